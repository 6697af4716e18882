// A conversation as the page knows it: a pure function from the server's events to what is shown.
//
// turn      {id, role: "user" | "assistant" | "divider" | "mark", text, unsaid, status, spoken, note}
//           divider: a new conversation begins; mark: something happened to the line.
//           status: pending (words not known yet), streaming, done, cut, failed. Of a cut answer `text` was heard, `unsaid` was not.
// response  {id, status, kind: "spoken" | "typed", modality, metrics, audibleMs}
//           kind: what it answers; audibleMs: end of speech → first sound here, measured by the page.

import { restored } from "./resync.js";

const MOST_TURNS = 300;
const MOST_RESPONSES = 100;

export const EMPTY = Object.freeze({
  turns: [],
  responses: [],
  hearing: false, // the user speaks
  awaiting: false, // a spoken turn has ended and its answer has not begun
  active: null, // the response in progress
  playing: null, // the response whose sound is being played
});

export const phase = (state) => {
  if (state.hearing) return "hearing";
  if (state.playing !== null || isWriting(state)) return "speaking";
  return state.active !== null || state.awaiting ? "thinking" : "listening";
};

export const canInterrupt = (state) => state.playing !== null || state.active !== null;

export const reduce = (state, event) => {
  if (!Object.hasOwn(RULES, event.type)) return state;
  return { ...state, ...RULES[event.type](state, event) };
};

// Whatever was in progress has been cut off with the connection.
export const ended = (state) => ({
  ...EMPTY,
  responses: state.responses,
  turns: state.turns.map((turn) => {
    if (turn.status === "streaming") return { ...turn, status: "cut" };
    return turn.status === "pending" ? { ...turn, status: "failed", note: "The call ended before this was understood." } : turn;
  }),
});

// The server remembers nothing of the calls before; the page keeps what was said, above a line.
export const begun = (state) => {
  if (state.turns.length === 0 || state.turns.at(-1).role === "divider") return state;
  return { ...state, turns: [...state.turns, line(state, "divider", "A new conversation")] };
};

const TURN = { text: "", unsaid: "", status: "done", spoken: false, note: "" };

const line = (state, role, text) => {
  const numbers = state.turns.filter((turn) => turn.role === role).map((turn) => Number(turn.id.slice(role.length + 1)));
  return { ...TURN, id: `${role}-${Math.max(-1, ...numbers) + 1}`, role, text }; // the oldest may have gone, so they are not counted
};

const RULES = {
  "session.created": (state, { resync }) => (resync === undefined ? {} : resynced(state, resync)),
  "input_audio_buffer.speech_started": () => ({ hearing: true }),
  "input_audio_buffer.speech_stopped": () => ({ hearing: false }),
  "input_audio_buffer.committed": () => ({ hearing: false, awaiting: true }),
  "conversation.item.added": (state, { item, previous_item_id }) => itemAdded(state, item, previous_item_id),
  "conversation.item.done": (state, { item }) => itemKnown(state, item),
  "conversation.item.retrieved": (state, { item }) => itemKnown(state, item),
  "conversation.item.deleted": (state, { item_id }) => ({ turns: state.turns.filter((turn) => turn.id !== item_id) }),
  "conversation.item.truncated": (state, { item_id, audio_end_ms }) =>
    changed(state, item_id, () => ({ status: "cut", note: `Stopped after ${(audio_end_ms / 1000).toFixed(1)} s.` })),
  "conversation.item.input_audio_transcription.completed": (state, { item_id, transcript }) => ({
    ...changed(state, item_id, () => heard(transcript)),
    awaiting: state.awaiting && transcript !== "",
  }),
  "conversation.item.input_audio_transcription.failed": (state, { item_id, error }) =>
    changed(state, item_id, () => ({ status: "failed", note: `This could not be understood: ${error.message}` })),
  "response.created": (state, { response }) => responseCreated(state, response),
  "response.output_item.added": (state, { response_id, item }) => changed(state, item.id, () => ({ response: response_id })),
  "response.output_audio_transcript.delta": (state, event) => said(state, event),
  "response.output_text.delta": (state, event) => said(state, event),
  "response.output_audio_transcript.done": (state, event) => saidAll(state, event.item_id, event.transcript),
  "response.output_text.done": (state, event) => saidAll(state, event.item_id, event.text),
  "response.done": (state, { response }) => responseDone(state, response),
  "output_audio_buffer.started": (_state, { response_id }) => ({ playing: response_id }),
  "output_audio_buffer.stopped": () => ({ playing: null }),
  "output_audio_buffer.cleared": () => ({ playing: null }),
  "page.audible": (state, { ms }) => audible(state, ms),
  "page.mark": (state, { text }) => ({ turns: [...state.turns, line(state, "mark", text)] }),
};

const isWriting = (state) =>
  state.active !== null &&
  state.responses.some((response) => response.id === state.active && response.modality === "text") &&
  state.turns.some((turn) => turn.status === "streaming" && turn.text !== "");

const itemAdded = (state, item, previous) => {
  if (item.role === "system" || state.turns.some((turn) => turn.id === item.id)) return {};
  const turn = made(item);
  const before = state.turns.findIndex((other) => other.id === previous);
  let place = before < 0 ? state.turns.length : before + 1;
  while (state.turns[place]?.role === "mark") place += 1;
  return { turns: state.turns.toSpliced(place, 0, turn).slice(-MOST_TURNS) };
};

const made = (item) => {
  const text = textOf(item);
  const status = item.role === "user" ? (text === null ? "pending" : "done") : (ANSWERED[item.status] ?? "done");
  const spoken = item.content.some((part) => part.type === "input_audio" || part.type === "output_audio");
  return { ...TURN, id: item.id, role: item.role, text: text ?? "", status, spoken };
};

const ANSWERED = { in_progress: "streaming", incomplete: "cut" };

const itemKnown = (state, item) => (item.status === "in_progress" ? {} : changed(state, item.id, (turn) => finished(turn, item)));

// A finished item as the server remembers it: of a cut answer only what was heard.
const finished = (turn, item) => {
  const text = textOf(item);
  if (turn.role === "user") return text === null ? {} : heard(text);
  const whole = turn.text + turn.unsaid;
  if (text === null || !whole.startsWith(text)) return { status: turn.status === "streaming" ? "done" : turn.status };
  const unsaid = whole.slice(text.length);
  const status = unsaid.trim() || item.status === "incomplete" ? "cut" : turn.status === "failed" ? "failed" : "done";
  return { text, unsaid, status };
};

// Of an answer that is still made the server's text goes on where its next delta begins.
const resynced = (state, { items, response }) => ({
  turns: restored(state.turns, items, {
    made,
    known: (turn, item) => ({ ...turn, ...(item.status === "in_progress" ? { text: textOf(item) ?? turn.text } : finished(turn, item)) }),
  }),
  hearing: false,
  awaiting: false,
  active: response,
});

const heard = (transcript) => ({
  text: transcript,
  status: "done",
  note: transcript === "" ? "Something was heard, but no words." : "",
});

const said = (state, { item_id, delta }) => changed(state, item_id, (turn) => ({ text: turn.text + delta }));

const saidAll = (state, id, text) =>
  changed(state, id, (turn) => (turn.status === "streaming" ? { text: text.length >= turn.text.length ? text : turn.text } : {}));

const responseCreated = (state, response) => {
  const known = {
    id: response.id,
    status: response.status,
    kind: state.awaiting ? "spoken" : "typed",
    modality: response.output_modalities?.[0] ?? "audio",
    metrics: null,
    audibleMs: null,
  };
  return { responses: [...state.responses, known].slice(-MOST_RESPONSES), active: response.id, awaiting: false };
};

const responseDone = (state, done) => {
  const responses = state.responses.map((response) =>
    response.id === done.id ? { ...response, status: done.status, metrics: done.metrics ?? null } : response,
  );
  const active = state.active === done.id ? null : state.active;
  const next = { ...state, responses, active };
  return done.output.reduce((so, item) => ({ ...so, ...changed(so, item.id, (turn) => outcome(turn, done)) }), next);
};

const outcome = (turn, done) => {
  if (done.status === "failed") return { status: "failed", note: `The answer failed: ${done.status_details?.error?.message ?? "no reason given"}` };
  if (done.status === "cancelled") return { status: "cut", note: turn.note || "Stopped." };
  const note = done.status === "incomplete" ? "The answer reached its longest length." : turn.note;
  return { status: turn.status === "streaming" ? "done" : turn.status, note };
};

const audible = (state, ms) => {
  const place = state.responses.findLastIndex((response) => response.audibleMs === null);
  if (place < 0) return {};
  return { responses: state.responses.with(place, { ...state.responses[place], audibleMs: ms }) };
};

const changed = (state, id, change) => ({
  turns: state.turns.map((turn) => (turn.id === id ? { ...turn, ...change(turn) } : turn)),
});

// null: not known yet.
const textOf = (item) => {
  const texts = item.content.map((part) => part.text ?? part.transcript ?? null).filter((text) => text !== null);
  return texts.length === 0 ? null : texts.join("\n");
};
