// Offers, answers and hang-ups: what of a call goes over HTTP. Refusals become problems.

import { bearer, storedKey } from "./key.js";
import { Problem, refusalProblem } from "./words.js";

const CALLS = "/v1/realtime/calls";
const ICE_SERVERS_WITHIN_MS = 1500;
const ANSWER_WITHIN_MS = 3000; // of an offer to come back: the network may be gone, and a fresh try finds it again

// Posts an SDP offer, with a token to come back to its conversation. Returns the answer and where the call is to be hung up.
// `hold`: a page that is loaded again closes its connection, too, and that is no goodbye.
export const offerCall = async (sdp, resume) => {
  const headers = { "Content-Type": "application/sdp", ...bearer() };
  const offer = { method: "POST", headers, body: sdp };
  const answer = await (resume === null ? asked(`${CALLS}?hold=1`, offer) : resumed(offer, resume));
  return { sdp: await answer.text(), location: answer.headers.get("Location") };
};

// What the browser may ask for a way through firewalls; none where the server knows of none, or does not say so soon.
export const iceServers = async () => {
  const signal = AbortSignal.timeout(ICE_SERVERS_WITHIN_MS);
  try {
    const answer = await asked("/v1/realtime/ice_servers", { headers: bearer(), cache: "no-store", signal });
    return await answer.json();
  } catch (error) {
    if (error instanceof Problem || error instanceof DOMException) return []; // what is wrong is told of the offer itself
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
export const checkKey = (signal) => asked("/v1/models", { headers: bearer(), signal });

const resumed = async (offer, token) => {
  const url = `${CALLS}?${new URLSearchParams({ hold: "1", resume: token })}`;
  try {
    return await asked(url, { ...offer, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  } catch (error) {
    if (error instanceof DOMException) throw new Problem("unreachable");
    throw error instanceof Problem && error.code === "bad_request" ? new Problem("resume_refused", { detail: error.detail }) : error;
  }
};

const asked = async (url, options) => {
  const answer = await fetch(url, options).catch((error) => {
    throw error instanceof TypeError ? new Problem("unreachable") : error;
  });
  if (!answer.ok) throw refusalProblem(answer.status, await errorOf(answer), answer.headers.get("Retry-After"), storedKey() !== "");
  return answer;
};

// OpenAI's error shape, or undefined where something else answered (a proxy).
const errorOf = async (answer) => {
  try {
    return (await answer.json()).error;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
};
