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
  addTrack = () => ({
    replaceTrack: async () => {
      if (this.connectionState === "closed") throw new DOMException("closed", "InvalidStateError");
    },
  });
  createDataChannel = () => (this.channel = Object.assign(new EventTarget(), { readyState: "connecting", send() {} }));
  setLocalDescription = async () => {};
  setRemoteDescription = async () => {
    this.channel.readyState = "open";
    this.dispatchEvent(Object.assign(new Event("track"), { track: new Track() }));
  };
  close() {
    this.connectionState = "closed";
  }
}

// What the browser gives, in the order of asking: the microphones wait for the person, the answers for the server.
const asked = { microphones: [], answers: [] };
const waiting = (list) => () => new Promise((resolve) => list.push(resolve));

Object.assign(globalThis, {
  window: { isSecureContext: true, RTCPeerConnection: Peer },
  RTCPeerConnection: Peer,
  MediaStream: Stream,
  AudioWorkletNode: Node,
  AudioContext: class {
    audioWorklet = { addModule: async () => {} };
    createMediaStreamSource = () => new Node();
    close = async () => {};
  },
  sessionStorage: { getItem: () => null },
  fetch: waiting(asked.answers),
});
Object.defineProperty(globalThis, "navigator", { value: { mediaDevices: { getUserMedia: waiting(asked.microphones) } } });

const { Voice } = await import("../../web/voice/voice.js");
const ON = { event() {}, ended() {}, levels() {}, quality() {}, microphoneGone() {} };
const ANSWER = { ok: true, text: async () => "answer", headers: new Headers({ Location: "/v1/realtime/calls/1" }) };
const settled = () => new Promise((resolve) => setTimeout(resolve));

let audio;
beforeEach(() => {
  audio = { srcObject: null };
  asked.microphones.length = asked.answers.length = 0;
});

const open = async (microphone = new Stream()) => {
  const attempt = new AbortController();
  const opening = Voice.open({ deviceId: "", audio, on: ON, signal: attempt.signal });
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
