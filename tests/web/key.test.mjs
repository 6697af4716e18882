// The key of the server, in browsers that let a page keep it and in those that do not.

import assert from "node:assert/strict";
import { test } from "node:test";

const keyOf = async (name, place) => {
  Object.defineProperty(globalThis, "sessionStorage", { configurable: true, ...place });
  return import(`../../web/voice/key.js?${name}`);
};

test("a secret is kept for the tab, and found again by the next page; the key is not", async () => {
  const held = new Map();
  const value = { getItem: (name) => held.get(name) ?? null, setItem: (name, text) => held.set(name, text) };
  const before = await keyOf("before", { value });
  assert.deepEqual(before.bearer(), {});
  before.keepKey("key", "one");
  assert.equal(before.enteredKey(), "key");
  assert.deepEqual(before.bearer(), { Authorization: "Bearer one" });
  assert.deepEqual([...held.values()], ["one"]);
  const after = await keyOf("after", { value });
  assert.deepEqual(after.subprotocols(), ["realtime", "openai-insecure-api-key.one"]);
  assert.equal(after.enteredKey(), "");
});

test("where pages may keep nothing it is kept in the page", async () => {
  const refuse = () => {
    throw new DOMException("access is denied for this document", "SecurityError");
  };
  const key = await keyOf("refused", { get: refuse });
  assert.equal(key.storedKey(), "");
  key.keepKey("key", "two");
  assert.equal(key.storedKey(), "two");
});
