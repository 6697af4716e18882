// What the page says, in plain words: states, stages, and what to do when something is wrong.

import { queueWords } from "./queue.js";

export class Problem extends Error {
  // `code` is a key of PROBLEMS; `detail` is what the server or the browser said about it.
  // `queue`: where this page stands in the waiting room, and the name of the place.
  constructor(code, { detail = "", retryAfterS = null, queue = null } = {}) {
    super(detail || code);
    this.code = code;
    this.detail = detail;
    this.retryAfterS = retryAfterS;
    this.queue = queue;
  }
}

const IDLE = {
  unknown: ["One moment", "Looking for the server."],
  loading: ["Getting ready", "The models are being loaded. Start waits for them."],
  ready: ["Ready when you are", "Nobody is speaking."],
  failed: ["Ready, in part", "Some models are out of order; answers that need them will fail."],
  draining: ["Closing", "The server is about to stop."],
  unreachable: ["Nobody there", "The server does not answer."],
};

const STATES = {
  connecting: ["Connecting", "Your browser may ask for the microphone."],
  listening: ["Listening", "Nobody is speaking. Your turn."],
  hearing: ["You are speaking", "A short silence ends your turn."],
  thinking: ["Thinking", "Antiphon has heard you."],
  speaking: ["Antiphon is speaking", "Speak to interrupt, or press the button."],
};

// With push to talk, while nothing is held.
const WAITING = {
  listening: ["Hold to talk", "Hold the button, or Space, while you speak."],
  speaking: ["Antiphon is speaking", "Hold the button, or Space, and speak to interrupt."],
};

const TEXT_STATES = {
  connecting: ["Connecting", "By text, without sound."],
  listening: ["Your turn", "Write a line; the answer comes as text."],
  thinking: ["Thinking", "Antiphon has read it."],
  speaking: ["Antiphon is writing", "Interrupt stops it."],
};

// Who is speaking, large, and what that means. `shown` is a data-state other than error; `waiting`: push to talk is on, and
// nothing is held; `place`: in the waiting room.
export const stateWords = (shown, { transport, readiness, muted, waiting, reconnecting, place = null }) => {
  if (shown === "idle") return IDLE[readiness.status];
  if (shown === "connecting" && place !== null) return queueWords(place);
  if (reconnecting) return ["Reconnecting", transport === "text" ? "What was said is still here." : "Antiphon cannot hear you just now."];
  if (waiting && transport === "voice" && Object.hasOwn(WAITING, shown)) return WAITING[shown];
  if (muted && shown === "listening") return ["Muted", "Antiphon cannot hear you."];
  return transport === "text" ? TEXT_STATES[shown] : STATES[shown];
};

export const READINESS = {
  unknown: "Looking for the server",
  loading: "Loading",
  ready: "Ready",
  failed: "Partly out of order",
  draining: "Stopping",
  unreachable: "No answer from the server",
};

export const STAGES = {
  vad: "Noticing speech",
  turn: "Sensing when you have finished",
  asr: "Recognising words",
  thinker: "Finding an answer",
  talker: "Finding its sounds",
  code2wav: "Making the sound",
  narrator: "The second voice",
};

export const QUALITY = { unknown: "measuring", good: "good", fair: "fair", poor: "poor" };

// title, what to do, and which ways on are offered: retry, text, listen, key.
const PROBLEMS = {
  permission_denied: [
    "The microphone is not allowed",
    "Allow it for this page, in the address bar or in the system's privacy settings, and try again.",
    ["retry", "text"],
  ],
  no_microphone: ["No microphone was found", "Plug one in or switch it on, and try again.", ["retry", "text"]],
  microphone_busy: [
    "The microphone is in use",
    "Another program holds it. Close that program, or choose another microphone under Devices.",
    ["retry", "text"],
  ],
  microphone_gone: ["The microphone has gone", "It was unplugged or switched off. Choose another one under Devices.", []],
  no_webrtc: ["This browser cannot carry a call", "It has no WebRTC, or has it switched off. A current Firefox, Chrome or Safari can.", ["text"]],
  insecure: [
    "Browsers give the microphone to secure pages only",
    "Open this page by https, or as http://127.0.0.1 on the machine that serves it.",
    ["text"],
  ],
  key_needed: ["This server asks for a key", "Enter one that its operator has given you. It stays in this page and is forgotten with it.", ["key"]],
  key_wrong: ["The server does not know this key", "Check it, and enter it again.", ["key"]],
  full: ["All seats are taken", "The server talks with as many people as it can. Try again in a moment.", ["retry"]],
  not_ready: ["The server is not ready yet", "It is loading, or about to stop. Start can be pressed again when it is ready.", ["retry"]],
  bad_request: ["The server refused the call", "Page and server do not understand each other. Reload the page to get the server's own.", ["retry", "text"]],
  sound_blocked: ["Antiphon speaks, but your browser is silent", "It plays sound after a click only.", ["listen"]],
  udp_blocked: [
    "No sound can get through",
    "The server answered, but no audio reached it within ten seconds. A firewall, a VPN or a container may block UDP.",
    ["retry", "text"],
  ],
  lost: ["The call was lost", "The connection broke off. What was said is still here; a new call begins a new conversation.", ["retry"]],
  reconnecting: ["Connection lost – reconnecting…", "The conversation goes on as soon as the line is back.", []],
  resume_refused: [
    "This conversation is over",
    "The server holds it no longer: it was away for too long, or the server was restarted. Start begins a new one.",
    [],
  ],
  superseded: [
    "Another tab has taken over",
    "The conversation goes on there. Start begins another one here.",
    [],
  ],
  server_stopped: ["The server has ended the call", "It was stopped or restarted. This page keeps looking for it.", []],
  text_refused: [
    "The server did not take the connection",
    "It may be loading or stopping. A proxy in front of it must let WebSockets through.",
    ["text"],
  ],
  refused: ["The server could not do that", "The conversation goes on.", []],
  page_failed: ["This page made a mistake", "Reload it. If it happens again, the browser's console tells more.", ["retry"]],
  server_failed: ["The server made a mistake", "Its log tells which. Trying again often helps.", ["retry", "text"]],
  unreachable: ["The server does not answer", "Is it still running? This page keeps looking for it.", []],
};

const BACK = "It was stopped or restarted, and is there again. Start begins a new conversation.";

// `open`: the server can be called now.
export const explain = (problem, open) => {
  const [title, usual, ways] = PROBLEMS[problem.code];
  const advice = problem.code === "server_stopped" && open ? BACK : usual;
  const wait = problem.retryAfterS === null ? "" : ` The server suggests waiting ${problem.retryAfterS} s.`;
  return { title, advice: advice + wait, detail: problem.detail, ways };
};

const MICROPHONE = {
  NotAllowedError: "permission_denied",
  SecurityError: "permission_denied",
  NotFoundError: "no_microphone",
  OverconstrainedError: "no_microphone",
  NotReadableError: "microphone_busy",
  AbortError: "microphone_busy",
};

// What getUserMedia threw, as a problem. Anything else is a fault of this page, and stays what it is.
export const microphoneProblem = (error) => {
  const code = error instanceof DOMException ? MICROPHONE[error.name] : undefined;
  return code === undefined ? error : new Problem(code);
};

const STATUSES = { 400: "bad_request", 404: "bad_request", 415: "bad_request", 422: "bad_request", 429: "full" };

// A refusal over HTTP, as a problem. `error`: what the server said, undefined where something else has answered. `hasKey`: one was
// sent.
export const refusalProblem = (status, error, retryAfter, hasKey) => {
  if (error === undefined && status < 500) return new Problem("unreachable");
  const detail = error?.message ?? `HTTP ${status}`;
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const retryAfterS = Number.isNaN(seconds) ? null : seconds;
  if (status === 401 || status === 403) {
    return new Problem(status === 403 ? "bad_request" : hasKey ? "key_wrong" : "key_needed", { detail: status === 403 ? detail : "" });
  }
  if (status === 503 && error?.code === "session_queued") return new Problem("queued", { detail, retryAfterS, queue: error.queue });
  if (status === 503) {
    const loading = error?.code === "not_ready" || error?.code === "server_draining";
    return new Problem(loading ? "not_ready" : "full", { detail, retryAfterS });
  }
  return new Problem(STATUSES[status] ?? "server_failed", { detail, retryAfterS });
};
