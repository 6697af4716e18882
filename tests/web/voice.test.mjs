// A conversation by voice, with a browser of the test's own: whatever comes too late takes nothing and leaves nothing open.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

class Track {
  live = true;
  stop() {
    this.live = false;
  }
  addEventListener() {}
}

class Stream {
  constructor(tracks = [new Track()]) {
    this.tracks = tracks;
  }
  getTracks = () => this.tracks;
  getAudioTracks = () => this.tracks;
}

class Node {
  connect() {}
  disconnect() {}
  port = {};
}

class Peer extends EventTarget {
  static all = [];
  connectionState = "new";
  localDescription = { sdp: "offer" };
  constructor() {
    super();
    Peer.all.push(this);
  }
  addTrack = (track) => {
    this.sent = track;
    return {
      replaceTrack: async (other) => {
        if (this.connectionState === "closed") throw new DOMException("closed", "InvalidStateError");
        this.sent = other;
      },
    };
  };
  createDataChannel = () => (this.channel = Object.assign(new EventTarget(), { readyState: "connecting", send() {} }));
  setConfiguration(configuration) {
    this.configuration = configuration;
  }
  setLocalDescription = async () => {};
  setRemoteDescription = async () => {
    this.dispatchEvent(Object.assign(new Event("track"), { track: new Track(), receiver: this.receiver }));
    this.turn("connected");
    this.channel.readyState = "open";
  };
  receiver = { jitterBufferTarget: null, getStats: async () => new Map() };
  getReceivers = () => [this.receiver];
  getStats = async () => new Map();
  turn(state) {
    this.connectionState = state;
    this.dispatchEvent(new Event("connectionstatechange"));
  }
  say(event) {
    this.channel.dispatchEvent(Object.assign(new Event("message"), { data: JSON.stringify(event) }));
  }
  close() {
    this.connectionState = "closed";
  }
}

// What the browser gives, in the order of asking: the microphones wait for the person, the answers for the server.
const asked = { microphones: [], answers: [], offers: [] };
const waiting = (list) => () => new Promise((resolve) => list.push(resolve));

Object.assign(globalThis, {
  window: Object.assign(new EventTarget(), { isSecureContext: true, RTCPeerConnection: Peer }),
  RTCPeerConnection: Peer,
  MediaStream: Stream,
  AudioWorkletNode: Node,
  AudioContext: class {
    audioWorklet = { addModule: async () => {} };
    createMediaStreamSource = () => new Node();
    resume = async () => {};
    close = async () => {};
  },
  fetch: (url) => {
    if (url.endsWith("ice_servers")) return Promise.resolve({ ok: true, json: async () => [TURN] });
    asked.offers.push(url);
    return waiting(asked.answers)();
  },
});
const TURN = { urls: "turn:127.0.0.1:3478", username: "u", credential: "c" };
Object.defineProperty(globalThis, "navigator", { value: { onLine: true, mediaDevices: { getUserMedia: waiting(asked.microphones) } } });

const { Ticket } = await import("../../web/voice/ticket.js");
const { Voice } = await import("../../web/voice/voice.js");
const told = [];
const tell = (name) => (value) => told.push([name, value]);
const ON = { event: tell("event"), ended: tell("ended"), reconnecting: tell("reconnecting"), reconnected: tell("reconnected"), silenced: tell("silenced"), levels() {}, quality() {}, microphoneGone() {} };
const ANSWER = { ok: true, text: async () => "answer", headers: new Headers({ Location: "/v1/realtime/calls/1" }) };
const settled = () => new Promise((resolve) => setTimeout(resolve));

let audio;
beforeEach(() => {
  audio = { srcObject: null, play: async () => {} };
  asked.microphones.length = asked.answers.length = asked.offers.length = told.length = Peer.all.length = 0;
});

const open = async (microphone = new Stream(), muted = false) => {
  const attempt = new AbortController();
  const opening = Voice.open({ deviceId: "", muted, audio, ticket: new Ticket(), on: ON, signal: attempt.signal });
  asked.microphones.shift()(microphone);
  await settled();
  return { attempt, opening, answer: asked.answers.shift() };
};

test("an attempt that was given up and ends late leaves the sound of the next one alone", async () => {
  const first = await open();
  first.attempt.abort();
  const second = await open();
  second.answer(ANSWER);
  const voice = await second.opening;
  const sound = audio.srcObject;
  assert.ok(sound instanceof Stream);
  first.answer(ANSWER);
  await assert.rejects(first.opening, { name: "AbortError" });
  assert.equal(audio.srcObject, sound);
  voice.close();
  assert.equal(audio.srcObject, null);
});

test("a microphone that is allowed after the call has ended is closed again", async () => {
  const { opening, answer } = await open();
  answer(ANSWER);
  const voice = await opening;
  const changing = voice.useMicrophone("another");
  voice.close();
  const late = new Stream();
  asked.microphones.shift()(late);
  await changing;
  assert.deepEqual(late.tracks.map((track) => track.live), [false]);
});

test("a microphone is changed while the call goes on, and muting it meanwhile holds", async () => {
  const [before, after] = [new Stream(), new Stream()];
  const { opening, answer } = await open(before);
  answer(ANSWER);
  const voice = await opening;
  const changing = voice.useMicrophone("another");
  voice.setMuted(true);
  asked.microphones.shift()(after);
  await changing;
  assert.deepEqual([before.tracks[0].live, after.tracks[0].live, after.tracks[0].enabled], [false, true, false]);
  voice.close();
  assert.equal(after.tracks[0].live, false);
});

test("a microphone that begins muted is never heard", async () => {
  const microphone = new Stream();
  const { opening, answer } = await open(microphone, true);
  assert.equal(microphone.tracks[0].enabled, false);
  answer(ANSWER);
  (await opening).close();
});

test("the browser is told the ways through firewalls, and not to hold sound back", async () => {
  const { opening, answer } = await open();
  answer(ANSWER);
  const voice = await opening;
  assert.deepEqual(Peer.all[0].configuration, { iceServers: [TURN] });
  assert.equal(Peer.all[0].receiver.jitterBufferTarget, 0);
  voice.close();
});

test("a browser that plays nothing before a click is told of, and played after it", async () => {
  audio.play = async () => {
    throw new DOMException("no click yet", "NotAllowedError");
  };
  const { opening, answer } = await open();
  answer(ANSWER);
  const voice = await opening;
  await settled();
  assert.equal(told.at(-1)[0], "silenced");
  audio.play = async () => "plays";
  assert.equal(await voice.listen(), "plays");
  voice.close();
});

const created = (token) => ({ type: "session.created", session: { id: "s" }, resume: { token, seq: 1, expires_at: Date.now() / 1000 + 60 } });

test("a lost line is replaced by another with the same microphone, and closed only then", async () => {
  const [before, after] = [new Stream(), new Stream()];
  const { opening, answer } = await open(before);
  answer(ANSWER);
  const voice = await opening;
  const [first] = Peer.all;
  first.say(created("one"));
  const sound = audio.srcObject;
  first.turn("disconnected");
  await settled();
  assert.deepEqual(told.at(-1), ["reconnecting", undefined]);
  const [, second] = Peer.all;
  assert.deepEqual([second.sent, first.connectionState, audio.srcObject], [before.tracks[0], "disconnected", sound]);
  assert.equal(asked.offers.at(-1), "/v1/realtime/calls?hold=1&resume=one");
  const changing = voice.useMicrophone("another");
  asked.microphones.shift()(after);
  await changing;
  asked.answers.shift()(ANSWER);
  await settled();
  assert.equal(told.at(-1)[0], "reconnected");
  assert.deepEqual([second.sent, first.connectionState], [after.tracks[0], "closed"]);
  assert.notEqual(audio.srcObject, sound);
  voice.close();
  assert.equal(second.connectionState, "closed");
});
