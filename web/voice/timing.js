// Where the time of an answer went. Pure: from the responses of a conversation to marks, bars, medians and an axis.
// All times are milliseconds since the end of the user's speech (of a typed turn: since it was sent).

export const MARKS = ["transcript", "decision", "first_token", "first_audio", "audible"];

// What happened until a mark, and after which other mark it could begin. An answer is often begun before it is decided that the
// user has finished, so nothing waits for `decision` but the sound.
const WORK = {
  transcript: { name: "Words recognised", after: [] },
  decision: { name: "Sure that you had finished", after: [] },
  first_token: { name: "First word thought of", after: ["transcript"] },
  first_audio: { name: "First sound made", after: ["first_token"] },
  audible: { name: "Sound heard here", after: ["first_audio"] },
};

export const nameOf = (mark) => WORK[mark].name;

export const marksOf = (response) => ({
  transcript: response.metrics?.transcript_ms ?? null,
  decision: response.metrics?.decision_ms ?? null,
  first_token: response.metrics?.ttft_ms ?? null,
  first_audio: response.metrics?.ttfa_ms ?? null,
  audible: response.audibleMs,
  total: response.metrics?.total_ms ?? null,
});

// The answers of which something is known, oldest first.
export const timed = (responses) =>
  responses
    .map((response) => ({ id: response.id, kind: response.kind, status: response.status, marks: marksOf(response) }))
    .filter(({ marks }) => MARKS.some((mark) => marks[mark] !== null));

// One bar for each mark that happened: from where its work could begin to where it was done.
export const barsOf = (marks) =>
  MARKS.filter((mark) => marks[mark] !== null).map((mark) => {
    const before = WORK[mark].after.map((name) => marks[name]).filter((at) => at !== null);
    return { mark, from: Math.min(Math.max(0, ...before), marks[mark]), to: marks[mark] };
  });

// What tells best when the answer was there for the user: heard, or else made, or else (text) begun.
export const arrivalMark = (marks) => MARKS.findLast((mark) => marks[mark] !== null);

export const mediansOf = (turns) => Object.fromEntries([...MARKS, "total"].map((mark) => [mark, median(turns.map(({ marks }) => marks[mark]))]));

// The turns to compare a turn with: a typed one has less to wait for than a spoken one.
export const alike = (turns, kind) => {
  const same = turns.filter((turn) => turn.kind === kind);
  return same.length > 0 ? same : turns;
};

export const median = (values) => {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (known.length === 0) return null;
  const middle = known.length >> 1;
  return known.length % 2 === 1 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
};

const STEPS_MS = [50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 20000];

// A round end beyond the longest time, and at most five ticks on the way.
export const axisOf = (longestMs) => {
  const step = STEPS_MS.find((candidate) => longestMs / candidate <= 4.6) ?? STEPS_MS.at(-1);
  const count = Math.max(1, Math.ceil(longestMs / step));
  return { end: count * step, ticks: Array.from({ length: count + 1 }, (_, index) => index * step) };
};

export const shownMs = (ms) => (ms === null ? "–" : `${Math.round(ms).toLocaleString("en")} ms`);

// The waterfall in words, for those who do not see it.
export const told = (turn) => {
  const start = turn.kind === "spoken" ? "after the end of your speech" : "after you sent it";
  const parts = MARKS.filter((mark) => turn.marks[mark] !== null).map((mark) => `${nameOf(mark).toLowerCase()} ${shownMs(turn.marks[mark])}`);
  return `${parts.join(", ")} ${start}`;
};
