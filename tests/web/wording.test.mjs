// What the page makes of refusals, outages and microphones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isGone, problemAfter, unansweredAfter } from "../../web/voice/outage.js";
import { isOpen, progressOf, understood } from "../../web/voice/readiness.js";
import { explain, microphoneProblem, Problem, refusalProblem, stateWords } from "../../web/voice/words.js";

const code = (...refusal) => refusalProblem(...refusal).code;

test("every refusal has a name that people can act on", () => {
  assert.equal(code(401, { message: "no key" }, null, false), "key_needed");
  assert.equal(code(401, { message: "not this key" }, null, true), "key_wrong");
  assert.equal(code(503, { code: "session_limit_reached", message: "full" }, "2", false), "full");
  assert.equal(code(503, { code: "not_ready", message: "loading" }, "5", false), "not_ready");
  assert.equal(code(503, { code: "server_draining", message: "stopping" }, "5", false), "not_ready");
  assert.equal(code(400, { message: "sdp: expected m=audio" }, null, false), "bad_request");
  assert.equal(code(403, { message: "Origin" }, null, false), "bad_request");
  assert.equal(code(502, undefined, null, false), "server_failed");
  assert.equal(code(404, undefined, null, false), "unreachable");
});

test("the server's own words and its advice to wait are kept", () => {
  const told = explain(refusalProblem(503, { code: "session_limit_reached", message: "all 4 seats are taken" }, "7", false), true);
  assert.equal(told.detail, "all 4 seats are taken");
  assert.match(told.advice, /suggests waiting 7 s/);
  assert.doesNotMatch(explain(refusalProblem(503, { message: "full" }, null, false), true).advice, /suggests/);
});

test("what the browser says of the microphone is translated, and other faults are not hidden", () => {
  const names = { NotAllowedError: "permission_denied", NotFoundError: "no_microphone", NotReadableError: "microphone_busy" };
  for (const [name, expected] of Object.entries(names)) assert.equal(microphoneProblem(new DOMException("", name)).code, expected);
  const fault = new TypeError("a fault of the page");
  assert.equal(microphoneProblem(fault), fault);
});

test("every state has its words in every readiness", () => {
  for (const status of ["unknown", "loading", "ready", "failed", "draining", "unreachable"]) {
    assert.equal(stateWords("idle", { transport: "none", readiness: { status }, muted: false }).length, 2);
  }
  for (const shown of ["connecting", "listening", "thinking", "speaking"]) {
    for (const transport of ["voice", "text"]) assert.equal(stateWords(shown, { transport, readiness: { status: "ready" }, muted: true }).length, 2);
  }
  assert.equal(stateWords("hearing", { transport: "voice", readiness: { status: "ready" }, muted: false })[0], "You are speaking");
});

const words = (shown, changes) => stateWords(shown, { transport: "voice", readiness: ready, muted: true, waiting: false, reconnecting: false, ...changes })[0];

test("with push to talk it says what to do, and while it reconnects that nobody listens", () => {
  assert.equal(words("listening", { waiting: true }), "Hold to talk");
  assert.equal(words("hearing", { waiting: true }), "You are speaking");
  assert.equal(words("listening", {}), "Muted");
  assert.equal(words("connecting", { reconnecting: true, waiting: true }), "Reconnecting");
});

test("a server that has come back is said to be there again", () => {
  const stopped = new Problem("server_stopped");
  assert.match(explain(stopped, false).advice, /keeps looking/);
  assert.match(explain(stopped, true).advice, /there again/);
});

const ready = { status: "ready", stages: [] };
const gone = { status: "unreachable", stages: [] };

test("a server that does not answer twice is gone", () => {
  assert.equal(isGone(unansweredAfter(0, gone)), false);
  assert.equal(isGone(unansweredAfter(unansweredAfter(0, gone), gone)), true);
  assert.equal(unansweredAfter(5, ready), 0);
});

test("an outage is told, explains a lost call, and is over when it is over", () => {
  assert.equal(problemAfter(null, gone, false).code, "unreachable");
  assert.equal(problemAfter(null, gone, true), null);
  assert.equal(problemAfter(new Problem("lost"), gone, false).code, "server_stopped");
  assert.equal(problemAfter(new Problem("unreachable"), { status: "loading", stages: [] }, false), null);
  assert.equal(problemAfter(new Problem("not_ready"), { status: "loading", stages: [] }, false).code, "not_ready");
  assert.equal(problemAfter(new Problem("not_ready"), ready, false), null);
  assert.equal(problemAfter(new Problem("server_stopped"), ready, false).code, "server_stopped");
  const denied = new Problem("permission_denied");
  assert.equal(problemAfter(denied, gone, false), denied);
});

test("readiness is counted by stages", () => {
  const stage = (name, state) => [name, { stage: name, state, slots: 1, note: "" }];
  const report = understood({ status: "loading", stages: Object.fromEntries([stage("vad", "ready"), stage("asr", "loading")]), waiting_for: ["asr"] });
  assert.deepEqual(progressOf(report), { ready: 1, all: 2 });
  assert.deepEqual([isOpen(report), isOpen(ready), isOpen({ status: "failed", stages: [] }), isOpen(gone)], [false, true, true, false]);
});
