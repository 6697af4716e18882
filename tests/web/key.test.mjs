// The key of the server, in browsers that let a page keep it and in those that do not.

import assert from "node:assert/strict";
import { test } from "node:test";

const keyOf = async (name, place) => {
  Object.defineProperty(globalThis, "sessionStorage", { configurable: true, ...place });
  return import(`../../web/voice/key.js?${name}`);
};

test("a key is kept for the tab, and found again by the next page", async () => {
  const held = new Map();
  const value = { getItem: (name) => held.get(name) ?? null, setItem: (name, text) => held.set(name, text) };
  const before = await keyOf("before", { value });
  assert.deepEqual(before.bearer(), {});
  before.keepKey("one");
  assert.deepEqual(before.bearer(), { Authorization: "Bearer one" });
  const after = await keyOf("after", { value });
  assert.deepEqual(after.subprotocols(), ["realtime", "openai-insecure-api-key.one"]);
});

test("where pages may keep nothing the key is kept in the page", async () => {
  const refuse = () => {
    throw new DOMException("access is denied for this document", "SecurityError");
  };
  const key = await keyOf("refused", { get: refuse });
  assert.equal(key.storedKey(), "");
  key.keepKey("two");
  assert.equal(key.storedKey(), "two");
});
