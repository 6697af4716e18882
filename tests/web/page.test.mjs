// The page as a whole, in a browser and a document of the tests' own: what a call that goes wrong shows, and how it goes on.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { ANSWER, asked, created, forget, Peer, settled, Stream } from "./fake_browser.mjs";
import { load } from "./fake_document.mjs";
import { stored } from "./fake_storage.mjs";

mock.timers.enable({ apis: ["setTimeout", "setInterval"] }); // the page looks at the server, and at the line, again and again

beforeEach(() => {
  forget();
  globalThis.sessionStorage = stored();
});

let pages = 0;
const open = async () => {
  const byId = load();
  await import(`../../web/voice/page.js?${(pages += 1)}`);
  await settled();
  return byId;
};

const reload = async () => {
  const held = { token: "kept", transport: "voice", graceS: 60, leftMs: Date.now() };
  sessionStorage.setItem("antiphon.conversation", JSON.stringify(held));
  return open();
};

const press = async (element) => {
  element.click(1);
  await settled();
};
const answer = async () => {
  asked.answers.shift()(ANSWER);
  await settled();
};
const allow = async (microphone = new Stream()) => {
  asked.microphones.shift()(microphone);
  await settled();
};
const refuse = async () => {
  asked.microphones.shift()(Promise.reject(new DOMException("no", "NotAllowedError")));
  await settled();
};
const lose = async () => {
  Peer.all.at(-1).turn("disconnected");
  await settled();
};
const second = async () => {
  mock.timers.tick(1000);
  await settled();
};

const call = async (microphone) => {
  const byId = await open();
  await press(byId("start"));
  await allow(microphone);
  await answer();
  Peer.all.at(-1).say(created("one"));
  await settled();
  assert.equal(byId("conversation").dataset.state, "listening");
  return byId;
};

const problem = (byId) => byId("notice").dataset.problem ?? null;
const tryAgain = (byId) => byId("notice").children.find(({ textContent, children }) => [textContent, children[0]?.textContent].includes("Try again"));

test("of a line that is lost nothing is said about how good it is", async () => {
  const byId = await call();
  await second();
  assert.equal(byId("quality").dataset.word, "good");
  await lose();
  await second();
  assert.equal(byId("conversation").dataset.state, "connecting");
  assert.equal(byId("quality").dataset.word, "unknown");
  await answer();
  await second();
  assert.equal(byId("quality").dataset.word, "good");
  await press(byId("stop"));
});

test("a lost line is told for as long as it is, and hides no other problem for longer", async () => {
  const microphone = new Stream();
  const byId = await call(microphone);
  microphone.tracks[0].dispatchEvent(new Event("ended"));
  await settled();
  assert.equal(problem(byId), "microphone_gone");
  await lose();
  assert.equal(problem(byId), "reconnecting");
  await answer();
  assert.equal(problem(byId), "microphone_gone");
  await press(byId("stop"));
});

test("a stop while the line is lost is no problem", async () => {
  const byId = await call();
  await lose();
  await press(byId("stop"));
  assert.deepEqual([problem(byId), byId("conversation").dataset.state], [null, "idle"]);
});

for (const [name, again] of [["Try again", tryAgain], ["Start", (byId) => byId("start")]]) {
  test(`${name} goes on with the conversation of before, when it was the microphone that failed after a reload`, async () => {
    const byId = await reload();
    await refuse();
    assert.deepEqual([problem(byId), asked.offers], ["permission_denied", []]);
    await press(again(byId));
    await allow();
    assert.deepEqual(asked.offers, ["/v1/realtime/calls?hold=1&resume=kept"]);
    await answer();
    await press(byId("stop"));
  });
}

test("a stop after a reload, before the microphone was allowed, is a goodbye", async () => {
  const byId = await reload();
  await press(byId("stop"));
  await allow();
  await press(byId("start"));
  await allow();
  assert.deepEqual(asked.offers, ["/v1/realtime/calls?hold=1&queue="]);
  await answer();
  await press(byId("stop"));
});
