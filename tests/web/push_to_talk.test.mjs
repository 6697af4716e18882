// Push to talk for those who use the keyboard.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PushToTalk } from "../../web/voice/push_to_talk.js";
import { load } from "./fake_document.mjs";

const inCall = () => {
  globalThis.window = new EventTarget();
  const byId = load();
  const changes = [];
  const pushToTalk = new PushToTalk(() => changes.push(pushToTalk.held));
  pushToTalk.show({ transport: "voice", call: {}, reconnecting: false });
  byId("push-to-talk").click();
  changes.length = 0;
  return { button: byId("hold"), changes };
};

test("Enter opens the microphone and, pressed again, closes it", () => {
  const { button, changes } = inCall();
  button.enter();
  button.enter();
  assert.deepEqual(changes, [true, false]);
});

test("Enter that is held opens the microphone once", () => {
  const { button, changes } = inCall();
  button.enter();
  for (let count = 0; count < 5; count += 1) button.enter({ repeat: true });
  assert.deepEqual(changes, [true]);
});
