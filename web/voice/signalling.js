// Offers, answers and hang-ups: what of a call goes over HTTP. Refusals become problems.

import { bearer, enteredKey, keepKey, storedKey } from "./key.js";
import { placeOf } from "./queue.js";
import { Problem, refusalProblem } from "./words.js";

const CALLS = "/v1/realtime/calls";
const SECRETS = "/v1/realtime/client_secrets";
const SECRET_LASTS_S = 7200; // the longest there is
const ICE_SERVERS_WITHIN_MS = 1500;
const ASK_AGAIN_S = 1; // for a place in the queue
const ANSWER_WITHIN_MS = 3000; // of an offer to come back: the network may be gone, and a fresh try finds it again

// Posts an SDP offer, with a token to come back to its conversation. Returns the answer and where the call is to be hung up.
// While all seats are taken a new call waits for its turn, and `queued(place)` hears where it stands.
// `hold`: a page that is loaded again closes its connection, too, and that is no goodbye.
export const offerCall = async (sdp, resume, queued, signal) => {
  const offer = { method: "POST", headers: { "Content-Type": "application/sdp" }, body: sdp };
  const call = await (resume === null ? inTurn(offer, queued, signal) : resumed(offer, resume));
  if (call.location === null) throw new Problem("unreachable"); // somebody else has answered
  return call;
};

// What the browser may ask for a way through firewalls; none where the server knows of none, or does not say so soon.
export const iceServers = async () => {
  const signal = AbortSignal.timeout(ICE_SERVERS_WITHIN_MS);
  try {
    const servers = await asked("/v1/realtime/ice_servers", { cache: "no-store", signal }, (answer) => answer.json());
    return Array.isArray(servers) ? servers : [];
  } catch (error) {
    if (error instanceof Problem) return []; // what is wrong is told of the offer itself
    throw error;
  }
};

// Outlives the page: the request is finished after it has gone.
export const hangUp = (location) => {
  fetch(`${location}/hangup`, { method: "POST", headers: bearer(), keepalive: true }).catch(() => {
    // The server notices by itself when nobody is left.
  });
};

// Whether this server would let us in: a WebSocket cannot tell why it was refused.
export const checkKey = (signal) => asked("/v1/models", { signal }, () => {});

// Requests bear a client secret from now on that this key has made, or the key itself, where the server makes none of it.
export const enter = async (key) => keepKey(key, await secretOf(key));

const secretOf = async (key) => {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  const body = JSON.stringify({ expires_after: { anchor: "created_at", seconds: SECRET_LASTS_S } });
  try {
    return (await askedOnce(SECRETS, { method: "POST", headers, body }, async (answer) => (await answer.json()).value)) ?? key;
  } catch (error) {
    if (error instanceof Problem) return key; // what is wrong is told of whatever is asked with it
    throw error;
  }
};

const read = async (answer) => ({ sdp: await answer.text(), location: answer.headers.get("Location") });

// A place that nobody asks for is given up after some seconds: a page that is closed need not say so.
const inTurn = async (offer, queued, signal) => {
  for (let place = ""; ; ) {
    try {
      return await asked(`${CALLS}?${new URLSearchParams({ hold: "1", queue: place })}`, offer, read);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "queued") throw error;
      place = error.queue.id;
      queued(placeOf(error.queue));
      await pause(error.retryAfterS ?? ASK_AGAIN_S, signal);
    }
  }
};

const pause = (seconds, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, seconds * 1000);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
  });

const resumed = async (offer, token) => {
  const url = `${CALLS}?${new URLSearchParams({ hold: "1", resume: token })}`;
  try {
    return await asked(url, { ...offer, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }, read);
  } catch (error) {
    throw error instanceof Problem && error.code === "bad_request" ? new Problem("resume_refused", { detail: error.detail }) : error;
  }
};

// As askedOnce. A secret that has ended, since it was old or the server has been started anew, is replaced.
const asked = async (url, options, take) => {
  const borne = storedKey();
  try {
    return await askedOnce(url, options, take);
  } catch (error) {
    if (error.code !== "key_wrong" || enteredKey() === "" || enteredKey() === borne) throw error;
    await enter(enteredKey());
    return askedOnce(url, options, take);
  }
};

// What `take` makes of the answer. Networks break off, stall, or answer themselves: all that is "unreachable", and may pass.
const askedOnce = async (url, options, take) => {
  try {
    const answer = await fetch(url, { ...options, headers: { ...bearer(), ...options.headers } });
    if (answer.ok) return await take(answer);
    throw refusalProblem(answer.status, await errorOf(answer), answer.headers.get("Retry-After"), storedKey() !== "");
  } catch (error) {
    throw error instanceof Problem || error.name === "AbortError" ? error : new Problem("unreachable");
  }
};

// OpenAI's error shape, or undefined where something else answered (a proxy).
const errorOf = async (answer) => {
  try {
    const { error } = await answer.json();
    return typeof error?.message === "string" ? error : undefined;
  } catch (broken) {
    if (broken instanceof SyntaxError) return undefined;
    throw broken;
  }
};
