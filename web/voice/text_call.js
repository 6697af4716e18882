// The same conversation by text, over a WebSocket: for browsers without microphone or WebRTC, and for people who rather write.

import { subprotocols } from "./key.js";
import { checkKey } from "./signalling.js";
import { answerByText } from "./wishes.js";
import { Problem } from "./words.js";

const PATH = "/v1/realtime?model=antiphon-voice";
const TRY_AGAIN_LATER = 1013;
const SERVICE_RESTART = 1012;

export class TextCall {
  #on;
  #socket;
  #over = false;

  // Resolves when the session stands and answers by text. Throws Problem or AbortError.
  static async open({ on, signal }) {
    await checkKey(signal);
    const call = new TextCall(on);
    try {
      await call.#opened(signal);
      return call;
    } catch (error) {
      call.close();
      throw error;
    }
  }

  constructor(on) {
    this.#on = on;
    const url = new URL(PATH, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    this.#socket = new WebSocket(url, subprotocols());
  }

  send(event) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event));
  }

  close() {
    this.#over = true;
    this.#socket.close();
  }

  #opened(signal) {
    return new Promise((resolve, reject) => {
      let open = false;
      this.#socket.addEventListener("message", ({ data }) => {
        if (this.#over) return;
        const event = JSON.parse(data);
        if (event.type === "session.created") this.send(answerByText());
        if (event.type === "session.updated" && !open) {
          open = true;
          resolve();
        }
        this.#on.event(event);
      });
      this.#socket.addEventListener("close", ({ code }) => {
        if (!open) reject(new Problem(code === TRY_AGAIN_LATER ? "full" : "text_refused"));
        else if (!this.#over) this.#on.ended(new Problem(code === SERVICE_RESTART ? "server_stopped" : "lost"));
        this.#over = true;
      });
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}
