// The page: the only module that knows all the others. What happens becomes state, and `paint` shows it.

import { missing } from "./call.js";
import { Composer } from "./composer.js";
import { ConnectionPanel } from "./connection_panel.js";
import { Contact } from "./contact.js";
import { Controls } from "./controls.js";
import { begun, canInterrupt, EMPTY, ended, phase, reduce } from "./conversation.js";
import { Devices } from "./devices.js";
import { byId, write } from "./element.js";
import { showReadiness } from "./loading_panel.js";
import { Meter } from "./meter.js";
import { Notice } from "./notice.js";
import { isGone, problemAfter, unansweredAfter } from "./outage.js";
import { PushToTalk } from "./push_to_talk.js";
import { queueWords } from "./queue.js";
import { isOpen, UNKNOWN, Watch } from "./readiness.js";
import { Score } from "./score.js";
import { checkKey, enter } from "./signalling.js";
import { TextCall } from "./text_call.js";
import { Ticket } from "./ticket.js";
import { Transcript } from "./transcript.js";
import { Voice } from "./voice.js";
import { showWaterfall } from "./waterfall.js";
import { interruption, whatWasHeard, written } from "./wishes.js";
import { explain, Problem, stateWords } from "./words.js";

const main = byId("conversation");

const state = {
  transport: "none", // none, voice, text
  connecting: null, // what gives up an attempt
  call: null,
  place: null, // in the waiting room, while all seats are taken
  reconnecting: false, // the call goes on, its connection is lost
  muted: false,
  problem: null,
  readiness: UNKNOWN,
  unanswered: 0, // looks in a row that got no answer
  conversation: EMPTY,
  quality: null,
};

const notice = new Notice(byId("notice"), { retry: () => begin("voice"), text: () => begin("text"), key: useKey, listen });
const transcript = new Transcript(byId("turns"));
const score = new Score(byId("score"));
const meter = new Meter(byId("level"));
const controls = new Controls({ start: () => begin("voice"), stop: hangUp, interrupt, mute: toggleMute });
const pushToTalk = new PushToTalk(onMicrophone);
const composer = new Composer(submit);
const connection = new ConnectionPanel();
const audio = byId("antiphon-voice");
const devices = new Devices(audio, { microphone: changeMicrophone, found: onDevices });
const watch = new Watch(onReadiness);
const ticket = new Ticket();

// The life of a call

// Where a reload found no microphone to come back with, the conversation of before is still held, and goes on.
async function begin(transport) {
  if (state.connecting !== null) return;
  if (ticket.transportAt(Date.now()) !== transport) ticket.forget();
  await connect(transport);
}

// With a ticket it is the conversation of before.
async function connect(transport) {
  const attempt = new AbortController();
  endCall();
  Object.assign(state, { transport, connecting: attempt, problem: null, muted: false, quality: null });
  state.conversation = begun(state.conversation);
  score.clear();
  render();
  try {
    state.call = await open(transport, attempt.signal);
    onMicrophone();
    say(transport === "voice" ? "Connected. Antiphon is listening." : "Connected by text.");
  } catch (error) {
    if (attempt.signal.aborted) return;
    state.transport = "none";
    fail(error);
  } finally {
    if (state.connecting === attempt) Object.assign(state, { connecting: null, place: null });
    render();
  }
  devices.refresh();
}

async function open(transport, signal) {
  const current = (tell) => (value) => signal.aborted || tell(value);
  const on = {
    event: current(onEvent),
    queued: current(onQueued),
    reconnecting: current(onReconnecting),
    reconnected: current(onReconnected),
    ended: current(onEnded),
    up: () => {},
    levels: current(onLevels),
    quality: current((history) => change({ quality: history })),
    silenced: current(() => change({ problem: new Problem("sound_blocked") })),
    microphoneGone: current(() => change({ problem: new Problem("microphone_gone") })),
  };
  const byText = { dial: (tell) => new TextCall({ on: tell }), ticket, transport, on, signal };
  const byVoice = { deviceId: devices.microphoneId, muted: isMuted(), audio, ticket, on, signal };
  const call = await (transport === "text" ? Contact.open(byText) : Voice.open(byVoice));
  if (!signal.aborted) return call;
  call.close();
  throw signal.reason;
}

function endCall() {
  state.connecting?.abort();
  state.call?.close();
  Object.assign(state, { call: null, connecting: null, place: null, reconnecting: false, transport: "none", quality: null, conversation: ended(state.conversation) });
  meter.clear();
}

function onQueued(place) {
  if (place.position !== state.place?.position) say(queueWords(place).join(". "));
  change({ place });
}

function onReconnecting() {
  change({ reconnecting: true });
}

function onReconnected(seconds) {
  const text = `Reconnected after ${Math.max(1, Math.round(seconds))} s`;
  change({ reconnecting: false, conversation: reduce(state.conversation, { type: "page.mark", text }) });
  say("Reconnected.");
}

function onEnded(problem) {
  endCall();
  fail(problem);
  watch.look();
}

function fail(error) {
  if (!(error instanceof Problem)) reportError(error);
  change({ problem: error instanceof Problem ? error : new Problem("page_failed", { detail: String(error) }) });
}

// What comes in

function onEvent(event) {
  if (event.type === "error") return change({ problem: new Problem("refused", { detail: event.error.message }) });
  if (event.type === "conversation.item.truncated") ask([whatWasHeard(event.item_id)]);
  if (event.type === "response.created" && state.problem?.code === "refused") state.problem = null;
  change({ conversation: reduce(state.conversation, event) });
}

function onReadiness(readiness) {
  const opened = isOpen(readiness) && !isOpen(state.readiness);
  const unanswered = unansweredAfter(state.unanswered, readiness);
  if (isGone(unanswered)) doubt();
  const problem = problemAfter(state.problem, readiness, state.call !== null);
  change({ readiness, unanswered, problem });
  if (opened && state.call === null) knock();
}

// A call by voice hears for itself whether it is lost.
function doubt() {
  if (state.transport === "text") state.call?.reconnect();
}

function onDevices(any) {
  if (any && state.problem?.code === "no_microphone") change({ problem: null });
  if (!any && state.problem === null && state.call === null) change({ problem: new Problem("no_microphone") });
}

// Better to ask for the key now than after the microphone was allowed.
async function knock() {
  try {
    await checkKey(AbortSignal.timeout(5000));
  } catch (error) {
    if (error instanceof Problem && error.code.startsWith("key_")) change({ problem: error });
  }
}

async function useKey(key) {
  await enter(key);
  change({ problem: null });
  knock();
}

function onLevels(report) {
  score.add(report, isMuted());
  meter.add(report, isMuted());
}

// What people do

function hangUp() {
  endCall();
  ticket.forget(); // nobody comes back, even if there was no contact yet to say so
  say("The call has ended.");
  render();
}

async function listen() {
  await state.call?.listen();
  if (state.problem?.code === "sound_blocked") change({ problem: null });
}

function interrupt() {
  if (canInterrupt(state.conversation)) ask(interruption(state.transport));
}

async function submit(text) {
  if (state.call === null) await begin("text");
  if (state.call === null || state.reconnecting) return false;
  interrupt();
  ask(written(text));
  return true;
}

function ask(events) {
  for (const event of events) state.call?.send(event);
}

async function changeMicrophone(deviceId) {
  const { call } = state;
  if (state.transport !== "voice" || call === null) return;
  try {
    await call.useMicrophone(deviceId);
    if (call === state.call) change({ problem: null });
  } catch (error) {
    if (call === state.call) fail(error); // else it is over, and nobody waits for its microphone
  }
}

function toggleMute() {
  state.muted = !state.muted;
  onMicrophone();
}

function isMuted() {
  return pushToTalk.on ? pushToTalk.waiting : state.muted;
}

// At once: the first sound after a press is heard.
function onMicrophone() {
  if (pushToTalk.on) state.muted = false; // it takes the place of Mute
  if (state.transport === "voice") state.call?.setMuted(isMuted());
  render();
}

// What is shown

const LINE_LOST = new Problem("reconnecting"); // hides any other for as long as that is so

function change(changes) {
  Object.assign(state, changes);
  render();
}

function shownState() {
  if (state.connecting !== null || state.reconnecting) return "connecting";
  if (state.call !== null) return phase(state.conversation);
  return state.problem === null ? "idle" : "error";
}

let rendering = false;
let timed = null; // whose timing is shown

function render() {
  if (rendering) return;
  rendering = true;
  queueMicrotask(() => {
    rendering = false;
    paint();
  });
}

function paint() {
  const shown = shownState();
  main.dataset.state = shown;
  main.dataset.transport = state.transport;
  main.dataset.microphone = state.transport !== "voice" || state.call === null ? "none" : isMuted() ? "closed" : "open";
  const words = { ...state, muted: isMuted(), waiting: pushToTalk.waiting };
  const [title, detail] = shown === "error" ? [explain(state.problem, false).title, ""] : stateWords(shown, words);
  write(byId("now"), title);
  write(byId("now-detail"), detail);
  notice.show(state.reconnecting ? LINE_LOST : state.problem, isOpen(state.readiness));
  showReadiness(state.readiness);
  controls.show(state, pushToTalk.on);
  pushToTalk.show(state);
  transcript.show(state.conversation.turns);
  composer.show(state);
  if (state.conversation.responses !== timed) showWaterfall(byId("timing"), byId("timing-table"), (timed = state.conversation.responses));
  const quality = state.reconnecting ? [] : (state.quality ?? []); // a line that is lost loses no packets
  connection.show(state.transport === "voice" && state.call !== null ? quality : null, state.transport === "text" ? "text only" : "no call");
}

function say(words) {
  write(byId("announcer"), words);
}

window.addEventListener("offline", doubt);
// A page that goes may be a page that is loaded again: its conversation waits for it a while.
window.addEventListener("pagehide", () => ticket.left(Date.now()));

if (missing() !== null) state.problem = new Problem(missing());
devices.refresh().then(onDevices);
render();
watch.look();
const before = ticket.transportAt(Date.now());
if (before !== null) connect(before);
