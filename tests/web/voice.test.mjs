// A conversation by voice, with a browser of the test's own: whatever comes too late takes nothing and leaves nothing open.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ANSWER, asked, created, forget, Peer, settled, Stream, TURN } from "./fake_browser.mjs";
import { Ticket } from "../../web/voice/ticket.js";
import { Voice } from "../../web/voice/voice.js";

const told = [];
const tell = (name) => (value) => told.push([name, value]);
const ON = { event: tell("event"), ended: tell("ended"), reconnecting: tell("reconnecting"), reconnected: tell("reconnected"), silenced: tell("silenced"), levels() {}, quality() {}, microphoneGone() {} };

let audio;
beforeEach(() => {
  audio = { srcObject: null, play: async () => {} };
  told.length = 0;
  forget();
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

test("a microphone that is allowed after a stop is closed again, and takes no other conversation's ticket", async () => {
  const [attempt, ticket, microphone] = [new AbortController(), new Ticket(), new Stream()];
  const opening = Voice.open({ deviceId: "", muted: false, audio, ticket, on: ON, signal: attempt.signal });
  attempt.abort();
  ticket.keep(created("by text").resume, "text", Date.now());
  asked.microphones.shift()(microphone);
  await assert.rejects(opening, { name: "AbortError" });
  assert.deepEqual([ticket.token, microphone.tracks[0].live, asked.offers], ["by text", false, []]);
});

test("a stop while the browser takes the server's answer ends the call", async () => {
  const microphone = new Stream();
  const { attempt, opening, answer } = await open(microphone);
  const [peer] = Peer.all;
  const { setRemoteDescription } = peer;
  const taking = new Promise((resolve) => {
    peer.setRemoteDescription = () => new Promise((goOn) => resolve(goOn)).then(setRemoteDescription);
  });
  answer(ANSWER);
  const goOn = await taking;
  attempt.abort();
  goOn();
  await assert.rejects(opening, { name: "AbortError" });
  assert.deepEqual([peer.connectionState, microphone.tracks[0].live, audio.srcObject], ["closed", false, null]);
  assert.deepEqual(asked.hangUps, ["/v1/realtime/calls/1/hangup"]);
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
