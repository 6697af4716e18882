// The same conversation by text, over a WebSocket: for browsers without microphone or WebRTC, and for people who rather write.
// A line of a Contact.

import { subprotocols } from "./key.js";
import { placeOf } from "./queue.js";
import { ask, isOpen } from "./readiness.js";
import { checkKey } from "./signalling.js";
import { answerByText } from "./wishes.js";
import { Problem } from "./words.js";

const PATH = "/v1/realtime";
const MODEL = "antiphon-voice";
const OPEN_WITHIN_MS = 4_000; // of an attempt to come back
const GOODBYE = 1000;
const NO_SEAT = [1008, 1013]; // none of those that this key may have, none at all
const CLOSED = { 1012: "server_stopped", 1013: "full", 4409: "superseded" };

export class TextCall {
  #on;
  #socket = null;
  #over = false;

  constructor({ on }) {
    this.#on = on;
  }

  // Resolves when the session stands and answers by text. Throws Problem or what `signal` says.
  async connect({ resume, signal }) {
    await checkKey(resume === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(OPEN_WITHIN_MS)])).catch((error) => {
      signal.throwIfAborted();
      throw error;
    });
    signal.throwIfAborted();
    const url = new URL(PATH, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.search = new URLSearchParams({ model: MODEL, queue: "events", ...(resume === null ? {} : { resume }) });
    this.#socket = new WebSocket(url, subprotocols());
    try {
      await this.#opened(resume, signal);
    } catch (error) {
      // A WebSocket cannot tell why it was refused; a server that is ready refuses tokens only.
      if (error.code === "text_refused" && resume !== null && isOpen(await ask())) throw new Problem("resume_refused");
      throw error;
    }
  }

  send(event) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event));
  }

  close() {
    this.#over = true;
    this.#socket?.close(GOODBYE);
  }

  drop() {
    this.close();
  }

  #opened(resume, signal) {
    return new Promise((resolve, reject) => {
      let open = false;
      const timer = resume === null ? null : setTimeout(() => reject(new Problem("unreachable")), OPEN_WITHIN_MS);
      const begin = () => {
        open = true;
        clearTimeout(timer);
        resolve();
      };
      this.#socket.addEventListener("message", ({ data }) => {
        if (this.#over) return;
        const event = JSON.parse(data);
        if (event.type === "session.queued") return this.#on.queued(placeOf(event));
        if (event.type === "session.created" && resume === null) this.send(answerByText());
        if (!open && event.type === (resume === null ? "session.updated" : "session.created")) begin();
        this.#on.event(event);
      });
      this.#socket.addEventListener("close", ({ code }) => {
        clearTimeout(timer);
        if (!open) reject(new Problem(NO_SEAT.includes(code) ? "full" : "text_refused"));
        else if (!this.#over) this.#on.lost(new Problem(CLOSED[code] ?? "lost"));
        this.#over = true;
      });
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}
