// Offers, answers and hang-ups: what of a call goes over HTTP. Refusals become problems.

import { bearer, storedKey } from "./key.js";
import { Problem, refusalProblem } from "./words.js";

// Posts an SDP offer. Returns the answer and where the call is to be hung up.
export const offerCall = async (sdp) => {
  const headers = { "Content-Type": "application/sdp", ...bearer() };
  const answer = await asked("/v1/realtime/calls", { method: "POST", headers, body: sdp });
  return { sdp: await answer.text(), location: answer.headers.get("Location") };
};

// Outlives the page: the request is finished after it has gone.
export const hangUp = (location) => {
  fetch(`${location}/hangup`, { method: "POST", headers: bearer(), keepalive: true }).catch(() => {
    // The server notices by itself when nobody is left.
  });
};

// Whether this server would let us in: a WebSocket cannot tell why it was refused.
export const checkKey = (signal) => asked("/v1/models", { headers: bearer(), signal });

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
