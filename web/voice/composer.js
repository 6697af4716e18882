// Text in place of speech: a line to write, and three to begin with.

import { byId } from "./element.js";
import { isOpen } from "./readiness.js";

export class Composer {
  #form = byId("composer");
  #message = byId("message");
  #send = byId("send");
  #openers = document.querySelectorAll(".opener");

  // `submit(text)` resolves to whether it was sent; what was not sent stays in its place.
  constructor(submit) {
    this.#form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = this.#message.value.trim();
      if (text !== "" && (await submit(text)) && this.#message.value.trim() === text) this.#message.value = "";
    });
    this.#message.addEventListener("keydown", (event) => this.#typed(event));
    for (const opener of this.#openers) opener.addEventListener("click", () => submit(opener.textContent));
  }

  show({ call, connecting, reconnecting, readiness, conversation }) {
    const closed = connecting !== null || reconnecting || (call === null && !isOpen(readiness));
    for (const button of [this.#send, ...this.#openers]) button.disabled = closed;
    byId("invitation").hidden = conversation.turns.length > 0;
  }

  #typed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!this.#send.disabled) this.#form.requestSubmit();
  }
}
