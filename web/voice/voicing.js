// When is there a voice in a signal? Runs in the audio thread, block by block, and is as pure as that allows.

// Watches one signal. Times are seconds of the audio clock; a block is what the browser hands over at once (128 samples).
export class Voicing {
  // A block counts as loud above `least` and above `overNoise` times the noise there is; a voice is `run` loud blocks of the last
  // `2 * run`. A sound begins when it comes after `quietS` of silence.
  constructor({ least, overNoise, run, quietS }) {
    this.least = least;
    this.overNoise = overNoise;
    this.run = run;
    this.quietS = quietS;
    this.noise = least;
    this.recent = [];
    this.lastVoicedAt = null; // end of the last voiced block
    this.beganAt = null; // beginning of the present or last stretch of sound
    this.level = 0;
  }

  hear(block, at, durationS) {
    const level = loudness(block);
    this.level = Math.max(level, this.level * 0.9);
    const loud = level > Math.max(this.least, this.overNoise * this.noise);
    this.noise = level < this.noise ? level : Math.min(this.noise * 1.0003 + 1e-8, this.least * 4);
    this.recent.push(loud ? at : null);
    if (this.recent.length > 2 * this.run) this.recent.shift();
    const voiced = this.recent.filter((time) => time !== null);
    if (!loud || voiced.length < this.run) return;
    if (this.lastVoicedAt === null || voiced[0] - this.lastVoicedAt > this.quietS) this.beganAt = voiced[0];
    this.lastVoicedAt = at + durationS;
  }
}

// Root mean square of the samples, 0 to 1.
export const loudness = (block) => {
  let sum = 0;
  for (const sample of block) sum += sample * sample;
  return block.length === 0 ? 0 : Math.sqrt(sum / block.length);
};
