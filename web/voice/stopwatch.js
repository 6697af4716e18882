// From the last voiced sample of the microphone to the first voiced sample of the answer, both on the audio clock.

export class Stopwatch {
  #zero = null;
  #notBefore = 0; // what sounded before the turn was over is no answer to it
  #latest = { at: 0, youLastVoicedAt: null, antiphonBeganAt: null };

  // The server has said that the user's turn is over: what the microphone last heard of a voice was its end.
  turnEnded() {
    this.#zero = this.#latest.youLastVoicedAt;
    this.#notBefore = this.#latest.at;
  }

  // A written turn was sent now.
  sent() {
    this.#zero = this.#notBefore = this.#latest.at;
  }

  forget() {
    this.#zero = null;
  }

  // A report of the ear. Returns milliseconds when with it the first sound of the answer has come, else null.
  report(report) {
    this.#latest = report;
    const began = report.antiphonBeganAt;
    if (this.#zero === null || began === null || began <= this.#notBefore) return null;
    const ms = (began - this.#zero) * 1000;
    this.#zero = null;
    return ms;
  }
}
