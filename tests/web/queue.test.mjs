// A page that waits for a seat: it holds its place by asking again, shows where it stands, and goes when its person does.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { queueWords } from "../../web/voice/queue.js";
import { ANSWER, asked, created, forget, Peer, settled, Stream } from "./fake_browser.mjs";
import { load } from "./fake_document.mjs";
import { stored } from "./fake_storage.mjs";

mock.timers.enable({ apis: ["setTimeout", "setInterval"] });

beforeEach(() => {
  forget();
  globalThis.sessionStorage = stored();
});

const QUEUED = (position, estimate_s, id = "q1") => ({
  ok: false,
  status: 503,
  json: async () => ({ error: { message: "all seats are taken", code: "session_queued", queue: { id, position, estimate_s } } }),
  headers: new Headers({ "Retry-After": "2" }),
});

const says = async (answer) => {
  asked.answers.shift()(answer);
  await settled();
};

const pass = async (ms) => {
  mock.timers.tick(ms);
  await settled();
};

let pages = 0;
const started = async () => {
  const byId = load();
  await import(`../../web/voice/page.js?queue${(pages += 1)}`);
  await settled();
  byId("start").click(1);
  await settled();
  asked.microphones.shift()(new Stream());
  await settled();
  return byId;
};

const told = (byId) => [byId("now").textContent, byId("now-detail").textContent];

test("it shows its place, holds it by its name, and is let in by itself", async () => {
  const byId = await started();
  await says(QUEUED(2, 21.4));
  assert.equal(byId("conversation").dataset.state, "connecting");
  assert.deepEqual(told(byId), ["2nd in line", "About 20 s. You are let in as soon as there is a seat."]);
  await pass(1999);
  assert.equal(asked.offers.length, 1);
  await pass(1);
  await says(QUEUED(1, null));
  assert.deepEqual(told(byId), ["You are next", "All seats are taken. You are let in as soon as there is a seat."]);
  await pass(2000);
  await says(ANSWER);
  assert.deepEqual(asked.offers, ["/v1/realtime/calls?hold=1&queue=", ...Array(2).fill("/v1/realtime/calls?hold=1&queue=q1")]);
  Peer.all.at(-1).say(created("one"));
  await settled();
  assert.equal(byId("conversation").dataset.state, "listening");
  byId("stop").click(1);
  await settled();
});

test("who stops waiting asks no more", async () => {
  const byId = await started();
  await says(QUEUED(3, 40));
  byId("stop").click(1);
  await settled();
  await pass(60_000);
  assert.equal(asked.offers.length, 1);
  assert.equal(byId("conversation").dataset.state, "idle");
});

test("a waiting room that is full is told as that", async () => {
  const byId = await started();
  await says(QUEUED(9, 300));
  await pass(2000);
  await says({ ...QUEUED(), json: async () => ({ error: { message: "all seats are taken", code: "session_limit_reached" } }) });
  assert.equal(byId("notice").dataset.problem, "full");
});

test("places are told as people count, and times no more exactly than they are known", () => {
  const large = (position) => queueWords({ position, estimateS: null })[0];
  assert.deepEqual([1, 2, 3, 4, 11, 21, 22].map(large), ["You are next", "2nd in line", "3rd in line", "4th in line", "11th in line", "21st in line", "22nd in line"]);
  const time = (estimateS) => queueWords({ position: 1, estimateS })[1].split(".")[0];
  assert.deepEqual([0, 14, 89, 90, 200].map(time), ["About 10 s", "About 10 s", "About 90 s", "About 2 minutes", "About 3 minutes"]);
});
