// What the server lets us in with, where it asks for a key. The key itself is known to this page alone; the tab keeps, for the page after a
// reload, a client secret that was made with it and that ends by itself. Never in a URL.

import { Kept } from "./keeping.js";

const SUBPROTOCOL = "openai-insecure-api-key.";

const kept = new Kept("sessionStorage", "antiphon.key");

export const storedKey = () => kept.value ?? "";

let entered = "";

export const enteredKey = () => entered;

// `bears`: what requests bear from now on.
export const keepKey = (key, bears) => {
  entered = key;
  kept.value = bears;
};

export const bearer = () => (storedKey() === "" ? {} : { Authorization: `Bearer ${storedKey()}` });

// Browsers cannot set headers on a WebSocket.
export const subprotocols = () => (storedKey() === "" ? ["realtime"] : ["realtime", SUBPROTOCOL + storedKey()]);
