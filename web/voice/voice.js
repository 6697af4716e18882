// One conversation by voice: the contact, both its ears, its watch over the line. Opened and closed as one.

import { Call, missing, openMicrophone } from "./call.js";
import { Contact } from "./contact.js";
import { Hush } from "./hush.js";
import { Levels } from "./levels.js";
import { LineWatch } from "./quality.js";
import { iceServers } from "./signalling.js";
import { Stopwatch } from "./stopwatch.js";
import { Problem } from "./words.js";

export class Voice {
  #audio;
  #on;
  #levels;
  #muted;
  #microphone = null;
  #contact = null;
  #calls = [];
  #over = false;
  #sound = null;
  #hush = new Hush();
  #line;
  #stopwatch = new Stopwatch();

  // `on`: event(event), queued(place), reconnecting(), reconnected(seconds), ended(problem), levels(report), quality(history), microphoneGone(),
  // silenced() when the browser plays nothing before somebody has clicked.
  static async open({ deviceId, muted, audio, ticket, on, signal }) {
    const code = missing();
    if (code !== null) throw new Problem(code);
    const voice = new Voice(audio, muted, on);
    try {
      await voice.#start(deviceId, ticket, signal);
      return voice;
    } catch (error) {
      voice.close();
      throw error;
    }
  }

  constructor(audio, muted, on) {
    this.#audio = audio;
    this.#muted = muted;
    this.#on = on;
    this.#levels = new Levels((report) => this.#heard(report));
    this.#line = new LineWatch((history) => on.quality(history));
  }

  send(event) {
    if (event.type === "response.create") this.#stopwatch.sent();
    this.#contact.send(event);
  }

  setMuted(muted) {
    this.#muted = muted;
    for (const track of this.#microphone.getAudioTracks()) track.enabled = !muted;
  }

  // After `silenced`, out of a click.
  listen() {
    this.#levels.wake();
    return this.#audio.play();
  }

  // Takes the place of the one before. When the conversation is over meanwhile, nothing stays open.
  async useMicrophone(deviceId) {
    const microphone = await openMicrophone(deviceId);
    if (this.#over) return stop(microphone);
    stop(this.#microphone);
    this.#listenTo(microphone);
    for (const call of this.#calls) await call.useMicrophone(microphone);
  }

  close() {
    if (this.#over) return;
    this.#over = true;
    this.#contact?.close();
    this.#line.stop();
    this.#levels.close();
    if (this.#microphone !== null) stop(this.#microphone);
    if (this.#audio.srcObject === this.#sound) this.#audio.srcObject = null; // else it plays the next call
  }

  async #start(deviceId, ticket, signal) {
    this.#levels.open();
    let servers = iceServers(); // while the person is asked for the microphone
    servers.catch(() => {}); // it is told where it is waited for
    const microphone = await openMicrophone(deviceId);
    this.#listenTo(microphone);
    const dial = (on) => {
      const call = new Call({ microphone: this.#microphone, iceServers: servers ?? iceServers(), on: { ...on, remote: (stream) => this.#play(stream) } });
      servers = null; // they name credentials that expire: asked again for each call that follows
      this.#calls.push(call);
      return call;
    };
    const on = { ...this.#on, event: (event) => this.#event(event), up: (call) => this.#up(call) };
    this.#contact = await Contact.open({ dial, ticket, transport: "voice", on, signal });
  }

  #up(call) {
    this.#calls = [call];
    this.#line.over(call.peer);
  }

  #listenTo(microphone) {
    this.#microphone = microphone;
    this.setMuted(this.#muted);
    this.#levels.hearMicrophone(microphone);
    microphone.getAudioTracks()[0].addEventListener("ended", () => this.#on.microphoneGone());
  }

  #play(stream) {
    if (this.#over) return;
    this.#audio.srcObject = this.#sound = stream;
    this.#hush.over(stream);
    this.#levels.hearRemote(stream);
    this.#audio.play().catch((error) => {
      if (error.name === "NotAllowedError") this.#on.silenced();
    });
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

const stop = (stream) => {
  for (const track of stream.getTracks()) track.stop();
};
