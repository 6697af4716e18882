// In the audio thread: hears the microphone (input 0) and the remote voice (input 1) on one clock, and reports 30 times a second.

import { Voicing } from "./voicing.js";

const BLOCKS_PER_REPORT = 12;
const MICROPHONE = { least: 0.01, overNoise: 4, run: 6, quietS: 0.3 };
const REMOTE = { least: 0.003, overNoise: 1, run: 2, quietS: 0.2 };
const SILENCE = new Float32Array(128);

class Ear extends AudioWorkletProcessor {
  constructor() {
    super();
    this.you = new Voicing(MICROPHONE);
    this.antiphon = new Voicing(REMOTE);
    this.blocks = 0;
  }

  process([microphone, remote]) {
    const heard = [microphone[0] ?? SILENCE, remote[0] ?? SILENCE];
    const durationS = heard[0].length / sampleRate;
    this.you.hear(heard[0], currentTime, durationS);
    this.antiphon.hear(heard[1], currentTime, durationS);
    this.blocks += 1;
    if (this.blocks % BLOCKS_PER_REPORT === 0) this.report();
    return true;
  }

  report() {
    this.port.postMessage({
      at: currentTime,
      you: this.you.level,
      antiphon: this.antiphon.level,
      youLastVoicedAt: this.you.lastVoicedAt,
      antiphonBeganAt: this.antiphon.beganAt,
    });
  }
}

registerProcessor("ear", Ear);
