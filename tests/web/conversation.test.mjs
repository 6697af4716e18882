// From events to what is shown, with the shapes that the server sends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { begun, canInterrupt, EMPTY, ended, phase, reduce } from "../../web/voice/conversation.js";

const after = (events, state = EMPTY) => events.reduce(reduce, state);
const spoken = (id) => ({ id, role: "user", status: "completed", content: [{ type: "input_audio", transcript: null }] });
const answer = (id, status, ...content) => ({ id, role: "assistant", status, content });
const words = (transcript) => ({ type: "output_audio", transcript });

const TURN = [
  { type: "input_audio_buffer.speech_started", item_id: "u1", audio_start_ms: 0 },
  { type: "input_audio_buffer.speech_stopped", item_id: "u1", audio_end_ms: 900 },
  { type: "input_audio_buffer.committed", item_id: "u1", previous_item_id: null },
  { type: "conversation.item.added", item: spoken("u1"), previous_item_id: null },
  { type: "conversation.item.done", item: spoken("u1"), previous_item_id: null },
];
const HEARD = { type: "conversation.item.input_audio_transcription.completed", item_id: "u1", content_index: 0, transcript: "Why?" };
const BEGUN = [
  { type: "response.created", response: { id: "r1", status: "in_progress", output: [], output_modalities: ["audio"] } },
  { type: "conversation.item.added", item: answer("a1", "in_progress"), previous_item_id: "u1" },
];
const SAID = ["Because ", "of the ", "air."].map((delta) => ({ type: "response.output_audio_transcript.delta", response_id: "r1", item_id: "a1", delta }));
const PLAYS = { type: "output_audio_buffer.started", response_id: "r1" };
const METRICS = { decision_ms: 500, transcript_ms: 190, ttft_ms: 300, ttfa_ms: 650, total_ms: 1900 };
const done = (status, item, details = null) => ({
  type: "response.done",
  response: { id: "r1", status, status_details: details, output: [item], output_modalities: ["audio"], metrics: METRICS },
});
const COMPLETED = done("completed", answer("a1", "completed", words("Because of the air.")));

test("a spoken turn goes through every state", () => {
  const seen = [];
  let state = EMPTY;
  for (const event of [...TURN, HEARD, ...BEGUN, ...SAID, PLAYS, COMPLETED, { type: "output_audio_buffer.stopped", response_id: "r1" }]) {
    state = reduce(state, event);
    if (seen.at(-1) !== phase(state)) seen.push(phase(state));
  }
  assert.deepEqual(seen, ["hearing", "listening", "thinking", "speaking", "listening"]);
  assert.deepEqual(state.turns.map(({ role, text, status }) => [role, text, status]), [
    ["user", "Why?", "done"],
    ["assistant", "Because of the air.", "done"],
  ]);
  assert.deepEqual(state.responses[0].metrics, METRICS);
  assert.equal(state.responses[0].kind, "spoken");
});

test("words grow while they are said, and the user's come later", () => {
  const pending = after(TURN);
  assert.equal(pending.turns[0].status, "pending");
  const growing = after([...BEGUN, ...SAID.slice(0, 2)], pending);
  assert.equal(growing.turns[1].text, "Because of the ");
  assert.equal(after([HEARD], growing).turns[0].text, "Why?");
});

test("an answer cut after it was complete is shown as far as it was heard", () => {
  const cut = after([
    ...TURN, HEARD, ...BEGUN, ...SAID, PLAYS, COMPLETED,
    { type: "output_audio_buffer.cleared", response_id: "r1" },
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 640 },
    { type: "conversation.item.retrieved", item: answer("a1", "completed", words("Because of")) },
  ]);
  const { text, unsaid, status, note } = cut.turns[1];
  assert.deepEqual([text, unsaid, status, note], ["Because of", " the air.", "cut", "Stopped after 0.6 s."]);
  assert.equal(phase(cut), "listening");
});

test("an answer cut while it is made keeps what was not heard apart", () => {
  const cut = after([
    ...TURN, HEARD, ...BEGUN, ...SAID, PLAYS,
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 300 },
    { type: "conversation.item.retrieved", item: answer("a1", "in_progress", words("Because of the air.")) },
    { type: "conversation.item.done", item: answer("a1", "incomplete", words("Because")), previous_item_id: "u1" },
    done("cancelled", answer("a1", "incomplete", words("Because")), { type: "cancelled", reason: "turn_detected" }),
  ]);
  const { text, unsaid, status } = cut.turns[1];
  assert.deepEqual([text, unsaid, status], ["Because", " of the air.", "cut"]);
});

test("a cut before the first sound leaves nothing heard", () => {
  const cut = after([
    ...TURN, ...BEGUN, ...SAID,
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 0 },
    { type: "conversation.item.retrieved", item: answer("a1", "completed", words("")) },
  ]);
  assert.deepEqual([cut.turns[1].text, cut.turns[1].unsaid], ["", "Because of the air."]);
});

test("noise that was no turn leaves no trace", () => {
  const state = after(TURN.slice(0, 2));
  assert.equal(phase(state), "listening");
  assert.deepEqual(state.turns, []);
});

test("a turn without words is not waited for", () => {
  const state = after([...TURN, { ...HEARD, transcript: "" }]);
  assert.equal(phase(state), "listening");
  assert.match(state.turns[0].note, /no words/);
});

test("a turn that could not be recognised says so", () => {
  const failed = { type: "conversation.item.input_audio_transcription.failed", item_id: "u1", error: { message: "asr: worker lost" } };
  const state = after([...TURN, failed]);
  assert.deepEqual([state.turns[0].status, state.turns[0].note], ["failed", "This could not be understood: asr: worker lost"]);
});

test("a failed answer says why and ends the waiting", () => {
  const error = { code: "engine_failed", message: "thinker: worker lost" };
  const state = after([...TURN, HEARD, ...BEGUN, done("failed", answer("a1", "incomplete"), { type: "failed", error })]);
  assert.equal(phase(state), "listening");
  assert.match(state.turns[1].note, /worker lost/);
});

test("a typed turn stands before its answer, which is written", () => {
  const typed = { id: "t1", role: "user", status: "completed", content: [{ type: "input_text", text: "Hello" }] };
  const state = after([
    { type: "conversation.item.added", item: typed, previous_item_id: null },
    { type: "response.created", response: { id: "r1", status: "in_progress", output: [], output_modalities: ["text"] } },
    { type: "conversation.item.added", item: answer("a1", "in_progress"), previous_item_id: "t1" },
    { type: "response.output_text.delta", response_id: "r1", item_id: "a1", delta: "Good day" },
  ]);
  assert.equal(phase(state), "speaking");
  assert.equal(canInterrupt(state), true);
  assert.equal(state.responses[0].kind, "typed");
  assert.deepEqual(state.turns.map(({ text }) => text), ["Hello", "Good day"]);
});

test("an item takes the place that the server gives it", () => {
  const state = after([...TURN, ...BEGUN, { type: "conversation.item.added", item: spoken("u2"), previous_item_id: "u1" }]);
  assert.deepEqual(state.turns.map(({ id }) => id), ["u1", "u2", "a1"]);
});

test("the first sound heard here belongs to the answer that waits for it", () => {
  const state = after([...TURN, HEARD, ...BEGUN, { type: "page.audible", ms: 812.5 }, COMPLETED]);
  assert.equal(state.responses[0].audibleMs, 812.5);
  assert.equal(after([{ type: "page.audible", ms: 5 }]).responses.length, 0);
});

test("the end of a call ends what was in progress and keeps what was said", () => {
  const over = ended(after([...TURN, ...BEGUN, ...SAID, PLAYS]));
  assert.equal(phase(over), "listening");
  assert.equal(canInterrupt(over), false);
  assert.deepEqual(over.turns.map(({ status }) => status), ["failed", "cut"]);
  const again = begun(over);
  assert.equal(again.turns.at(-1).role, "divider");
  assert.equal(begun(again), again);
  assert.equal(begun(EMPTY), EMPTY);
});

const back = (items, response = null) => ({ type: "session.created", session: { id: "s" }, resync: { items, response } });
const known = (transcript) => ({ ...spoken("u1"), content: [{ type: "input_audio", transcript }] });

test("lines between the turns keep names of their own when the oldest turns have gone", () => {
  const mark = { type: "page.mark", text: "Reconnected after 3 s" };
  const many = Array.from({ length: 299 }, (_, place) => ({ type: "conversation.item.added", item: spoken(`u${place}`) }));
  const ids = after([mark, mark, ...many, mark]).turns.map(({ id }) => id);
  assert.deepEqual(ids.filter((id) => id.startsWith("mark")), ["mark-1", "mark-2"]);
});

test("a session that begins brings nothing to restore", () => {
  const state = after(TURN);
  assert.equal(reduce(state, { type: "session.created", session: { id: "s" } }).turns, state.turns);
});

test("after a reload the server's snapshot is the transcript", () => {
  const state = after([back([known("Why?"), answer("a1", "incomplete", words("Because"))], "r1"), { type: "conversation.item.added", item: spoken("u1") }]);
  assert.deepEqual(state.turns.map(({ id, text, status, spoken: said }) => [id, text, status, said]), [
    ["u1", "Why?", "done", true],
    ["a1", "Because", "cut", true],
  ]);
  assert.equal(state.active, "r1");
});

test("after a lost line no turn is doubled, and what is still said goes on", () => {
  const before = after([...TURN, HEARD, ...BEGUN, ...SAID.slice(0, 1), PLAYS]);
  const state = after([back([known("Why?"), answer("a1", "in_progress", words("Because of "))], "r1"), { ...SAID[2], delta: "the air." }], before);
  assert.deepEqual(state.turns.map(({ id, text, status }) => [id, text, status]), [
    ["u1", "Why?", "done"],
    ["a1", "Because of the air.", "streaming"],
  ]);
  assert.equal(phase(state), "speaking");
});

test("an answer that was cut meanwhile shows what was not heard", () => {
  const before = after([...TURN, HEARD, ...BEGUN, ...SAID, PLAYS]);
  const state = after([back([known("Why?"), answer("a1", "incomplete", words("Because of"))])], before);
  assert.deepEqual([state.turns[1].text, state.turns[1].unsaid, state.turns[1].status], ["Because of", " the air.", "cut"]);
  assert.equal(canInterrupt({ ...state, playing: null }), false);
});

test("what the server has dropped goes, what it has got meanwhile comes, and marks keep their place", () => {
  const mark = { type: "page.mark", text: "Reconnected after 3 s" };
  const earlier = begun(after([{ type: "conversation.item.added", item: spoken("u0"), previous_item_id: null }]));
  const before = after([...TURN, HEARD, mark, { type: "conversation.item.added", item: spoken("u2"), previous_item_id: null }], earlier);
  const state = after([back([{ id: "s1", role: "system", content: [] }, known("Why?"), { id: "f1", type: "function_call" }, spoken("u3")])], before);
  assert.deepEqual(state.turns.map(({ id }) => id), ["u0", "divider-0", "u1", "mark-0", "u3"]);
});

test("turns too old for the snapshot stay", () => {
  const before = after([...TURN, HEARD, ...BEGUN, ...SAID, COMPLETED, { type: "conversation.item.added", item: spoken("u2"), previous_item_id: "a1" }]);
  const state = after([back([spoken("u2"), answer("a2", "in_progress")])], before);
  assert.deepEqual(state.turns.map(({ id }) => id), ["u1", "a1", "u2", "a2"]);
});

test("what is said after a mark stands behind it", () => {
  const state = after([...TURN, { type: "page.mark", text: "Reconnected" }, { type: "conversation.item.added", item: spoken("u2"), previous_item_id: "u1" }]);
  assert.deepEqual(state.turns.map(({ id }) => id), ["u1", "mark-0", "u2"]);
});

test("a mark does not begin a conversation, a divider does", () => {
  const marked = after([{ type: "page.mark", text: "Reconnected after 1 s" }], after(TURN));
  assert.equal(begun(marked).turns.at(-1).role, "divider");
});

test("what it does not know changes nothing", () => {
  const state = after(TURN);
  assert.equal(reduce(state, { type: "rate_limits.updated", rate_limits: [] }), state);
  assert.equal(reduce(state, { type: "constructor" }), state);
});
