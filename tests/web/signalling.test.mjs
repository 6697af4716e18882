// What of a call goes over HTTP, on networks that break it off or answer in the server's place.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { checkKey, enter, iceServers, offerCall } from "../../web/voice/signalling.js";

const PORTAL = "<html>Please accept the terms of this hotel.</html>";
const AT = { status: 201, headers: { Location: "/v1/realtime/calls/1" } };
const TURN = { urls: "turn:127.0.0.1:3478" };

const answers = (body, init) => {
  globalThis.fetch = async () => new Response(body, init);
};
const refuses = (status, error) => answers(JSON.stringify({ error }), { status });

// An answer whose body begins and then breaks, as `error` says.
const breaks = (init, error = new TypeError("network error")) => answers(new ReadableStream({ start: (body) => body.error(error) }), init);

// One whose body never comes. Browsers break it off when its signal says so.
const stalls = (init) => {
  globalThis.fetch = async (url, { signal }) => new Response(new ReadableStream({ start: (body) => signal.addEventListener("abort", () => body.error(signal.reason)) }), init);
};

const offered = (token = "sess.token") => offerCall("v=0", token);
const refused = (code) => ({ name: "Error", code });

test("an answer is told with the place of the call", async () => {
  answers("v=0 answer", AT);
  assert.deepEqual(await offered(), { sdp: "v=0 answer", location: AT.headers.Location });
});

test("a network that breaks an answer off does not answer", async () => {
  for (const token of ["sess.token", null]) {
    breaks(AT);
    await assert.rejects(offered(token), refused("unreachable"));
    breaks({ status: 400 });
    await assert.rejects(offered(token), refused("unreachable"));
  }
});

test("an answer of which nothing comes in time is none", async () => {
  const limit = new AbortController();
  mock.method(AbortSignal, "timeout", () => limit.signal);
  stalls(AT);
  const waiting = offered();
  await new Promise(setImmediate);
  limit.abort(new DOMException("too late", "TimeoutError"));
  await assert.rejects(waiting, refused("unreachable"));
  mock.restoreAll();
});

test("who answers in the server's place is not believed", async () => {
  for (const status of [200, 401, 403, 404, 422]) {
    answers(PORTAL, { status });
    await assert.rejects(offered(), refused("unreachable"), `${status}`);
  }
  answers('{"detail":"Not Found"}', { status: 404 });
  await assert.rejects(offered(), refused("unreachable"));
  answers(PORTAL, { status: 502 });
  await assert.rejects(offered(), refused("server_failed"));
});

test("the server's own refusals are", async () => {
  refuses(404, { code: "session_not_found", message: "open a new session" });
  await assert.rejects(offered(), refused("resume_refused"));
  refuses(400, { message: "sdp: expected m=audio" });
  await assert.rejects(offered(null), refused("bad_request"));
  refuses(401, { message: "this key is not valid here" });
  await assert.rejects(offered(), refused("key_needed"));
});

test("where the ways through firewalls cannot be understood there are none", async () => {
  answers(JSON.stringify([TURN]));
  assert.deepEqual(await iceServers(), [TURN]);
  for (const nothing of [() => breaks({}), () => answers(PORTAL), () => answers("{}"), () => answers(PORTAL, { status: 403 })]) {
    nothing();
    assert.deepEqual(await iceServers(), []);
  }
});

test("who gives up is told of nothing else", async () => {
  const attempt = new AbortController();
  globalThis.fetch = (url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const asked = checkKey(attempt.signal);
  attempt.abort();
  await assert.rejects(asked, { name: "AbortError" });
});

// A server with the key "key", whose secrets are "ek_1", "ek_2", …; those in `ended` have ended. `asked` has what each request bore.
const keyed = (ended, makes = true) => {
  const asked = [];
  let made = 0;
  globalThis.fetch = async (url, { headers }) => {
    const borne = headers.Authorization?.replace("Bearer ", "");
    asked.push(`${url.replace("/v1/", "")} ${borne}`);
    if (borne !== "key" && (!borne?.startsWith("ek_") || ended.has(borne))) return new Response('{"error":{"message":"no"}}', { status: 401 });
    if (!url.endsWith("client_secrets")) return new Response("{}");
    return makes ? Response.json({ value: `ek_${++made}` }) : new Response('{"error":{"message":"no"}}', { status: 403 });
  };
  return asked;
};

test("a key that is entered is exchanged for a secret, and a secret that has ended for another one", async () => {
  const ended = new Set();
  const asked = keyed(ended);
  await enter("key");
  await checkKey();
  ended.add("ek_1");
  await checkKey();
  await checkKey();
  const expected = ["realtime/client_secrets key", "models ek_1", "models ek_1", "realtime/client_secrets key", "models ek_2", "models ek_2"];
  assert.deepEqual(asked, expected);
});

test("where no secret is made the key goes on", async () => {
  const asked = keyed(new Set(), false);
  await enter("key");
  await checkKey();
  assert.deepEqual(asked, ["realtime/client_secrets key", "models key"]);
});

test("a wrong key is told, and not asked for over and over", async () => {
  const asked = keyed(new Set());
  await enter("wrong");
  await assert.rejects(checkKey(), refused("key_wrong"));
  assert.deepEqual(asked, ["realtime/client_secrets wrong", "models wrong"]);
});
