// The server's key, where it asks for one. Kept for this tab only, never in a URL.

const PLACE = "antiphon.key";
const SUBPROTOCOL = "openai-insecure-api-key.";

export const storedKey = () => sessionStorage.getItem(PLACE) ?? "";

export const keepKey = (key) => sessionStorage.setItem(PLACE, key);

export const bearer = () => (storedKey() === "" ? {} : { Authorization: `Bearer ${storedKey()}` });

// Browsers cannot set headers on a WebSocket.
export const subprotocols = () => (storedKey() === "" ? ["realtime"] : ["realtime", SUBPROTOCOL + storedKey()]);
