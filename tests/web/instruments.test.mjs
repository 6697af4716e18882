// Times, levels, counters: what the page measures and how it sums it up.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Pulse } from "../../web/voice/pulse.js";
import { counters, figures, LineWatch, wordFor } from "../../web/voice/quality.js";
import { Stopwatch } from "../../web/voice/stopwatch.js";
import { alike, arrivalMark, axisOf, barsOf, marksOf, median, mediansOf, timed, told } from "../../web/voice/timing.js";
import { Voicing } from "../../web/voice/voicing.js";

const METRICS = { transcript_ms: 190, decision_ms: 500, ttft_ms: 300, ttfa_ms: 650, total_ms: 1900 };
const spoken = (audibleMs = 790, metrics = METRICS) => ({ id: "r", kind: "spoken", status: "completed", metrics, audibleMs });

test("bars begin where their work could begin", () => {
  assert.deepEqual(barsOf(marksOf(spoken())), [
    { mark: "transcript", from: 0, to: 190 },
    { mark: "decision", from: 0, to: 500 },
    { mark: "first_token", from: 190, to: 300 },
    { mark: "first_audio", from: 300, to: 650 },
    { mark: "audible", from: 650, to: 790 },
  ]);
});

test("what did not happen has no bar, and nothing runs backwards", () => {
  const typed = marksOf({ ...spoken(90), metrics: { ...METRICS, transcript_ms: null, decision_ms: null, ttft_ms: 70, ttfa_ms: 100 } });
  assert.deepEqual(barsOf(typed), [
    { mark: "first_token", from: 0, to: 70 },
    { mark: "first_audio", from: 70, to: 100 },
    { mark: "audible", from: 90, to: 90 },
  ]);
  assert.equal(arrivalMark(typed), "audible");
});

test("answers of which nothing is known are not timed", () => {
  assert.equal(timed([spoken(null, null)]).length, 0);
  assert.equal(timed([spoken(500, null)]).length, 1);
});

test("medians leave out what did not happen", () => {
  assert.equal(median([null, 3, 1, 2]), 2);
  assert.equal(median([4, 1, null, 2, 3]), 2.5);
  assert.equal(median([null]), null);
  assert.equal(mediansOf(timed([spoken(700), spoken(null), spoken(900)])).audible, 800);
});

test("turns are compared with their like", () => {
  const turns = timed([spoken(), { ...spoken(), kind: "typed" }]);
  assert.deepEqual(alike(turns, "typed").map(({ kind }) => kind), ["typed"]);
  assert.equal(alike(turns.slice(0, 1), "typed").length, 1);
});

test("an axis ends at a round number beyond the longest time, with few ticks", () => {
  for (const longest of [1, 99, 100, 793, 1000, 1011, 4321, 59_000]) {
    const { end, ticks } = axisOf(longest);
    assert.ok(end >= longest && ticks.length <= 6 && ticks[0] === 0 && ticks.at(-1) === end, String(longest));
  }
});

test("the picture can be told in words", () => {
  assert.match(told(timed([spoken()])[0]), /^words recognised 190 ms, .*sound heard here 790 ms after the end of your speech$/);
});

test("the stopwatch runs from the last voice to the first sound after the turn", () => {
  const watch = new Stopwatch();
  const report = (at, youLastVoicedAt, antiphonBeganAt) => watch.report({ at, youLastVoicedAt, antiphonBeganAt });
  assert.equal(report(10, 9.98, 4), null);
  assert.equal(report(10.5, 10.1, 4), null);
  watch.turnEnded();
  assert.equal(report(10.8, 10.1, 4), null);
  assert.ok(Math.abs(report(11, 10.1, 10.9) - 800) < 1e-9);
  assert.equal(report(11.1, 10.1, 10.9), null);
});

test("what still sounds of the answer before is not taken for the next", () => {
  const watch = new Stopwatch();
  watch.report({ at: 20, youLastVoicedAt: 19, antiphonBeganAt: 19.5 });
  watch.turnEnded();
  assert.equal(watch.report({ at: 20.1, youLastVoicedAt: 19, antiphonBeganAt: 19.5 }), null);
  assert.ok(watch.report({ at: 20.6, youLastVoicedAt: 19, antiphonBeganAt: 20.4 }) > 0);
});

test("a typed turn counts from when it was sent; speech forgets what was waited for", () => {
  const watch = new Stopwatch();
  watch.report({ at: 5, youLastVoicedAt: null, antiphonBeganAt: null });
  watch.sent();
  watch.forget();
  assert.equal(watch.report({ at: 6, youLastVoicedAt: null, antiphonBeganAt: 5.5 }), null);
});

const BLOCK_S = 128 / 48_000;
const hear = (voicing, from, seconds, amplitude) => {
  for (let at = from; at < from + seconds; at += BLOCK_S) voicing.hear(new Float32Array(128).fill(amplitude), at, BLOCK_S);
};

test("voicing finds beginning and end of a sound to a few milliseconds", () => {
  const voicing = new Voicing({ least: 0.01, overNoise: 4, run: 3, quietS: 0.3 });
  hear(voicing, 0, 1, 0.0005);
  hear(voicing, 1, 0.5, 0.2);
  hear(voicing, 1.5, 1, 0.0005);
  assert.ok(Math.abs(voicing.beganAt - 1) < 0.01, String(voicing.beganAt));
  assert.ok(Math.abs(voicing.lastVoicedAt - 1.5) < 0.01, String(voicing.lastVoicedAt));
  hear(voicing, 2.5, 0.002, 0.9);
  assert.ok(voicing.lastVoicedAt < 1.6, "a click is no voice");
});

test("noise is no voice, however long", () => {
  const voicing = new Voicing({ least: 0.01, overNoise: 4, run: 3, quietS: 0.3 });
  hear(voicing, 0, 3, 0.009);
  assert.equal(voicing.lastVoicedAt, null);
});

const report = (...entries) => new Map(entries.map((entry, index) => [String(index), { id: String(index), ...entry }]));
const inbound = (packetsReceived, packetsLost, more = {}) => ({ type: "inbound-rtp", kind: "audio", packetsReceived, packetsLost, jitter: 0.004, ...more });
const outbound = (packetsSent) => ({ type: "outbound-rtp", kind: "audio", packetsSent });
const remote = (packetsLost) => ({ type: "remote-inbound-rtp", kind: "audio", packetsLost, jitter: 0.012, roundTripTime: 0.05 });
const pair = { type: "candidate-pair", nominated: true, state: "succeeded", currentRoundTripTime: 0.031 };
const buffer = (totalSamplesReceived, concealedSamples, jitterBufferEmittedCount, jitterBufferDelay) => ({
  totalSamplesReceived, concealedSamples, jitterBufferEmittedCount, jitterBufferDelay,
});

test("figures come from the counters of both directions", () => {
  const before = counters(report(inbound(100, 0, buffer(96_000, 0, 96_000, 4_000)), outbound(100), remote(0), pair));
  const now = counters(report(inbound(147, 3, buffer(144_000, 2_400, 141_600, 5_824)), outbound(150), remote(5), pair));
  assert.deepEqual(figures(before, now), {
    lossPercent: 6,
    lossUpPercent: 10,
    concealedPercent: 5,
    jitterMs: 12,
    roundTripMs: 31,
    playoutMs: 40,
  });
});

test("packets that came late after all are no negative loss", () => {
  const before = counters(report(inbound(100, 4), outbound(100), remote(4)));
  const { lossPercent, lossUpPercent } = figures(before, counters(report(inbound(152, 2), outbound(150), remote(2))));
  assert.deepEqual([lossPercent, lossUpPercent], [0, 0]);
});

test("a browser that tells nothing is no poor line", () => {
  const nothing = counters(report());
  assert.deepEqual(figures(null, nothing), {
    lossPercent: 0,
    lossUpPercent: 0,
    concealedPercent: null,
    jitterMs: 0,
    roundTripMs: null,
    playoutMs: null,
  });
});

test("the word is that of the last figures, whichever is worst", () => {
  const line = (figures) => [{ lossPercent: 0, lossUpPercent: 0, jitterMs: 5, roundTripMs: 20, ...figures }];
  assert.equal(wordFor([]), "unknown");
  assert.equal(wordFor(line({})), "good");
  assert.equal(wordFor([...line({ lossPercent: 50 }), ...line({})]), "good");
  assert.equal(wordFor(line({ lossUpPercent: 2 })), "fair");
  assert.equal(wordFor(line({ roundTripMs: 900 })), "poor");
});

test("figures are those of the last five seconds, and go on with the next connection", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const told = [];
  const watch = new LineWatch((history) => told.push(history.at(-1)?.lossPercent));
  const peer = (lostFirst) => {
    let [received, lost] = [-lostFirst, lostFirst];
    return { getStats: async () => report(inbound((received += 50), lost)) };
  };
  const second = async () => {
    context.mock.timers.tick(1000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  watch.over(peer(25));
  for (let count = 0; count < 7; count += 1) await second();
  assert.deepEqual(told.map(Math.round), [50, 25, 17, 13, 10, 0, 0]);
  watch.over(peer(50));
  await second();
  assert.deepEqual([told.length, told.at(-1)], [8, 100]);
  watch.stop();
});

test("a line whose packets stand still is dead after a while", () => {
  const pulse = new Pulse();
  assert.equal(pulse.stillMs(10, 0), 0);
  assert.equal(pulse.stillMs(10, 250), 250);
  assert.equal(pulse.stillMs(11, 500), 0);
  assert.equal(pulse.stillMs(11, 2000), 1500);
});
