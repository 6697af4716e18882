// The server's key, where it asks for one. Kept for this tab only, or, where pages may keep nothing, for this page. Never in a URL.

const PLACE = "antiphon.key";
const SUBPROTOCOL = "openai-insecure-api-key.";

const storage = () => {
  try {
    return sessionStorage;
  } catch (error) {
    if (error instanceof DOMException) return null; // all site data is blocked
    throw error;
  }
};

let kept = storage()?.getItem(PLACE) ?? "";

export const storedKey = () => kept;

export const keepKey = (key) => {
  kept = key;
  storage()?.setItem(PLACE, key);
};

export const bearer = () => (storedKey() === "" ? {} : { Authorization: `Bearer ${storedKey()}` });

// Browsers cannot set headers on a WebSocket.
export const subprotocols = () => (storedKey() === "" ? ["realtime"] : ["realtime", SUBPROTOCOL + storedKey()]);
