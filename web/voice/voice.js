// One conversation by voice: the call, both its ears, its watch over the line. Opened and closed as one.

import { Call, missing, openMicrophone } from "./call.js";
import { Hush } from "./hush.js";
import { Levels } from "./levels.js";
import { watch } from "./quality.js";
import { Stopwatch } from "./stopwatch.js";
import { Problem } from "./words.js";

export class Voice {
  #audio;
  #on;
  #levels;
  #call = null;
  #sound = null;
  #hush = new Hush();
  #unwatch = () => {};
  #stopwatch = new Stopwatch();

  // `on`: event(event), ended(problem), levels(report), quality(history), microphoneGone().
  static async open({ deviceId, audio, on, signal }) {
    const code = missing();
    if (code !== null) throw new Problem(code);
    const voice = new Voice(audio, on);
    try {
      await voice.#start(deviceId, signal);
      return voice;
    } catch (error) {
      voice.close();
      throw error;
    }
  }

  constructor(audio, on) {
    this.#audio = audio;
    this.#on = on;
    this.#levels = new Levels((report) => this.#heard(report));
  }

  send(event) {
    if (event.type === "response.create") this.#stopwatch.sent();
    this.#call.send(event);
  }

  setMuted(muted) {
    this.#call.setMuted(muted);
  }

  async useMicrophone(deviceId) {
    const microphone = await openMicrophone(deviceId);
    if (!(await this.#call.useMicrophone(microphone))) return;
    this.#listenTo(microphone);
  }

  close() {
    this.#unwatch();
    this.#call?.close();
    this.#levels.close();
    if (this.#audio.srcObject === this.#sound) this.#audio.srcObject = null; // else it plays the next call
  }

  async #start(deviceId, signal) {
    this.#levels.open();
    const microphone = await openMicrophone(deviceId);
    this.#listenTo(microphone);
    const on = {
      event: (event) => this.#event(event),
      ended: (problem) => this.#on.ended(problem),
      remote: (stream) => this.#play(stream),
    };
    this.#call = await Call.open({ microphone, on, signal });
    this.#unwatch = watch(this.#call.peer, (history) => this.#on.quality(history));
  }

  #listenTo(microphone) {
    this.#levels.hearMicrophone(microphone);
    microphone.getAudioTracks()[0].addEventListener("ended", () => this.#on.microphoneGone());
  }

  #play(stream) {
    this.#audio.srcObject = this.#sound = stream;
    this.#hush.over(stream);
    this.#levels.hearRemote(stream);
  }

  #event(event) {
    this.#hush.hear(event);
    if (event.type === "input_audio_buffer.speech_started") this.#stopwatch.forget();
    if (event.type === "input_audio_buffer.committed") this.#stopwatch.turnEnded();
    this.#on.event(event);
  }

  #heard(report) {
    const ms = this.#stopwatch.report(report);
    if (ms !== null) this.#on.event({ type: "page.audible", ms });
    this.#on.levels(report);
  }
}
