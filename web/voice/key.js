// The server's key, where it asks for one. Kept for this tab only, or, where pages may keep nothing, for this page. Never in a URL.

import { Kept } from "./keeping.js";

const SUBPROTOCOL = "openai-insecure-api-key.";

const kept = new Kept("sessionStorage", "antiphon.key");

export const storedKey = () => kept.value ?? "";

export const keepKey = (key) => {
  kept.value = key;
};

export const bearer = () => (storedKey() === "" ? {} : { Authorization: `Bearer ${storedKey()}` });

// Browsers cannot set headers on a WebSocket.
export const subprotocols = () => (storedKey() === "" ? ["realtime"] : ["realtime", SUBPROTOCOL + storedKey()]);
