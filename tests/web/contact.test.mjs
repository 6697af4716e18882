// A conversation whose connections break: what is tried again, for how long, and what ends it.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { comeBack } from "../../web/voice/comeback.js";
import { Contact } from "../../web/voice/contact.js";
import { Ticket } from "../../web/voice/ticket.js";
import { Problem } from "../../web/voice/words.js";
import { stored } from "./fake_storage.mjs";

globalThis.window = new EventTarget();

// A line that connects as its test says.
class Line {
  static all = [];
  done = [];
  sent = [];
  constructor(on) {
    this.on = on;
    Line.all.push(this);
  }
  connect({ resume, signal }) {
    this.resume = resume;
    return new Promise((resolve, reject) => {
      this.up = resolve;
      this.refuse = (code) => reject(new Problem(code));
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }
  hand(token) {
    this.on.event({ type: "session.created", session: { id: "s" }, resume: { token, seq: 1, expires_at: Date.now() / 1000 + 60 } });
  }
  err(code) {
    this.on.event({ type: "error", error: { code, message: code } });
  }
  send = (event) => this.sent.push(event);
  close = () => this.done.push("goodbye");
  drop = () => this.done.push("dropped");
}

const settled = () => new Promise((resolve) => setTimeout(resolve));
const until = async (holds) => {
  while (!holds()) await settled();
};
const told = [];
const on = Object.fromEntries(["event", "up", "reconnecting", "reconnected", "ended"].map((name) => [name, (value) => told.push([name, value])]));
const names = () => told.map(([name]) => name);

beforeEach(() => {
  told.length = Line.all.length = 0;
});

const open = async (ticket = new Ticket()) => {
  const giveUp = new AbortController();
  const opening = Contact.open({ dial: (tell) => new Line(tell), ticket, transport: "voice", on, signal: giveUp.signal });
  await settled();
  return { ticket, opening, giveUp };
};

const talking = async () => {
  const { ticket, opening } = await open();
  const [line] = Line.all;
  line.up();
  const contact = await opening;
  line.hand("one");
  return { ticket, contact, line };
};

test("a lost line is replaced with the newest token, and the old one goes without a goodbye", async () => {
  const { contact, line, ticket } = await talking();
  line.on.lost(new Problem("lost"), 1.5);
  await settled();
  const next = Line.all[1];
  assert.deepEqual([next.resume, line.done], ["one", []]);
  next.up();
  await until(() => names().includes("reconnected"));
  next.hand("two");
  assert.deepEqual([line.done, next.done, ticket.token], [["dropped"], [], "two"]);
  const [, seconds] = told.find(([name]) => name === "reconnected");
  assert.ok(seconds >= 1.5 && seconds < 5, String(seconds));
  contact.send("hello");
  assert.deepEqual([next.sent, line.sent], [["hello"], []]);
  line.on.event({ type: "late" });
  assert.ok(!told.some(([, event]) => event?.type === "late"));
});

test("what fails for a while is tried again; lines given up are closed when one is up", async () => {
  const { line } = await talking();
  line.on.lost(new Problem("lost"));
  await settled();
  Line.all[1].refuse("unreachable");
  await until(() => Line.all.length === 3);
  Line.all[2].refuse("udp_blocked");
  window.dispatchEvent(new Event("online"));
  await until(() => Line.all.length === 4);
  assert.deepEqual(Line.all.map((each) => each.done), [[], [], [], []]);
  Line.all[3].up();
  await until(() => names().includes("reconnected"));
  assert.deepEqual(Line.all.map((each) => each.done), [["dropped"], ["dropped"], ["dropped"], []]);
});

test("a refused token ends it and says so", async () => {
  const { line, ticket } = await talking();
  line.on.lost(new Problem("lost"));
  await settled();
  Line.all[1].refuse("resume_refused");
  await until(() => names().includes("ended"));
  assert.deepEqual([told.at(-1)[1].code, ticket.token, line.done], ["resume_refused", null, ["dropped"]]);
});

test("who is superseded does not fight", async () => {
  const { line, ticket } = await talking();
  line.err("superseded");
  line.on.lost(new Problem("lost"));
  await settled();
  assert.deepEqual([told.at(-1)[1].code, Line.all.length, ticket.token], ["superseded", 1, null]);
});

test("a close code that tells of another tab is enough", async () => {
  const { line } = await talking();
  line.on.lost(new Problem("superseded"));
  assert.deepEqual([told.at(-1)[1].code, Line.all.length], ["superseded", 1]);
});

test("superseded by one's own next line is no other tab", async () => {
  const { line } = await talking();
  line.on.lost(new Problem("lost"));
  await settled();
  line.err("superseded");
  Line.all[1].up();
  await until(() => names().includes("reconnected"));
  assert.ok(!names().includes("ended"));
});

test("a server that says that it stops is not asked again", async () => {
  const { line } = await talking();
  line.err("server_draining");
  line.on.lost(new Problem("lost"));
  assert.deepEqual([told.at(-1)[1].code, Line.all.length], ["server_stopped", 1]);
});

test("a server that stops and has put the conversation down is asked for it again", async () => {
  const { line } = await talking();
  line.err("server_draining");
  line.err("session_moved");
  line.on.lost(new Problem("server_stopped"));
  await settled();
  Line.all[1].up();
  await until(() => names().includes("reconnected"));
  assert.ok(!names().includes("ended"));
});

test("without a token a lost line is the end", async () => {
  const { opening } = await open();
  Line.all[0].up();
  await opening;
  Line.all[0].on.lost(new Problem("lost"));
  assert.deepEqual([told.at(-1)[1].code, Line.all.length], ["lost", 1]);
});

test("a stop while it reconnects says goodbye on all lines, and nothing comes after it", async () => {
  const { contact, line } = await talking();
  line.on.lost(new Problem("lost"));
  await settled();
  contact.close();
  await settled();
  Line.all[1].up();
  await settled();
  assert.deepEqual(Line.all.map((each) => each.done), [["goodbye"], ["goodbye"]]);
  assert.deepEqual(names().slice(-1), ["reconnecting"]);
});

test("an attempt that is given up throws what was given as the reason, and closes its line", async () => {
  const { opening, giveUp } = await open();
  giveUp.abort();
  await assert.rejects(opening, { name: "AbortError" });
  assert.deepEqual(Line.all[0].done, ["goodbye"]);
});

test("an attempt that was given up before it began leaves the ticket to the others", async () => {
  const ticket = new Ticket();
  ticket.keep({ token: "another's", expires_at: null }, "text", Date.now());
  await assert.rejects(Contact.open({ dial: (tell) => new Line(tell), ticket, transport: "voice", on, signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.deepEqual([ticket.token, Line.all], ["another's", []]);
});

test("a page that was loaded again comes back with the token of before", async () => {
  const ticket = new Ticket();
  ticket.keep({ token: "kept", expires_at: Date.now() / 1000 + 60 }, "voice", Date.now());
  const { opening } = await open(ticket);
  Line.all[0].refuse("unreachable");
  await until(() => Line.all.length === 2);
  Line.all[1].up();
  await opening;
  assert.deepEqual(Line.all.map((each) => [each.resume, each.done]), [["kept", ["dropped"]], ["kept", []]]);
});

test("the pauses grow to two seconds, and the grace ends the trying", async () => {
  const pauses = [];
  let nowS = 0;
  const rest = async (seconds) => {
    pauses.push(seconds);
    nowS += seconds;
  };
  const attempt = async () => {
    throw new Problem("unreachable");
  };
  const trying = comeBack({ attempt, graceS: 10, signal: new AbortController().signal, rest, now: () => nowS });
  await assert.rejects(trying, { code: "lost" });
  assert.deepEqual(pauses, [0.25, 0.5, 1, 2, 2, 2, 2]);
});

test("a fault of the page is not hidden by trying again", async () => {
  const attempt = async () => {
    throw new TypeError("a fault");
  };
  await assert.rejects(comeBack({ attempt, graceS: 10, signal: new AbortController().signal }), TypeError);
});

test("a ticket outlives a reload for as long as the server holds its conversation", () => {
  globalThis.sessionStorage = stored();
  const ticket = new Ticket();
  ticket.keep({ token: "t", expires_at: 1030 }, "text", 1_000_000);
  assert.equal(ticket.graceS, 30);
  ticket.left(1_010_000);
  assert.equal(new Ticket().transportAt(1_035_000), "text");
  assert.equal(new Ticket().transportAt(1_041_000), null);
  assert.equal(new Ticket().token, null);
  delete globalThis.sessionStorage;
});

test("a page that goes again before it was back has no longer time for that", () => {
  const ticket = new Ticket();
  ticket.keep({ token: "t", expires_at: 1030 }, "voice", 1_000_000);
  ticket.left(1_010_000);
  ticket.left(1_035_000);
  assert.equal(ticket.transportAt(1_041_000), null);
});

test("a grace that makes no sense is a usual one", () => {
  const ticket = new Ticket();
  const grace = (expires_at) => {
    ticket.keep({ token: "t", expires_at }, "voice", 1_000_000);
    return ticket.graceS;
  };
  assert.deepEqual([grace(900), grace(9_999_999), grace(null), grace(undefined)], [5, 300, 60, 60]);
});
