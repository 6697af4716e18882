// The ear of the page: both voices of a call on one audio clock.

const MODULE = "/web/voice/ear_worklet.js";

export class Levels {
  #context;
  #ear = null;
  #inputs = [null, null];
  #tell;
  #closed = false;

  // Made in a click, or the browser keeps its clock still. `tell(report)` gets what the worklet reports, 30 times a second.
  constructor(tell) {
    this.#context = new AudioContext({ latencyHint: "interactive" });
    this.#tell = tell;
  }

  // A conversation goes on without its levels when this fails; the console tells.
  async open() {
    try {
      await this.#context.audioWorklet.addModule(MODULE);
    } catch (error) {
      if (!this.#closed) reportError(error);
      return;
    }
    if (this.#closed) return;
    this.#ear = new AudioWorkletNode(this.#context, "ear", { numberOfInputs: 2, numberOfOutputs: 1 });
    this.#ear.port.onmessage = ({ data }) => this.#tell(data);
    this.#ear.connect(this.#context.destination); // silent; what leads nowhere is not run
    for (const input of [0, 1]) this.#join(input);
  }

  hearMicrophone(stream) {
    this.#hear(0, stream);
  }

  hearRemote(stream) {
    this.#hear(1, stream);
  }

  wake() {
    return this.#context.resume();
  }

  close() {
    this.#closed = true;
    return this.#context.close();
  }

  #hear(input, stream) {
    this.#inputs[input]?.disconnect();
    this.#inputs[input] = this.#context.createMediaStreamSource(stream);
    this.#join(input);
  }

  #join(input) {
    if (this.#ear !== null) this.#inputs[input]?.connect(this.#ear, 0, input);
  }
}
