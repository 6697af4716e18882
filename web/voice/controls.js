// Which buttons there are, which can be pressed, and what they do.

import { canInterrupt } from "./conversation.js";
import { byId } from "./element.js";
import { isOpen } from "./readiness.js";

export class Controls {
  #start = byId("start");
  #stop = byId("stop");
  #interrupt = byId("interrupt");
  #mute = byId("mute");

  // `on`: start(), stop(), interrupt(), mute(). Escape interrupts from anywhere.
  constructor(on) {
    this.#start.addEventListener("click", () => on.start());
    this.#stop.addEventListener("click", () => on.stop());
    this.#interrupt.addEventListener("click", () => on.interrupt());
    this.#mute.addEventListener("click", () => on.mute());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing) on.interrupt();
    });
  }

  // `pushToTalk`: it opens and closes the microphone in place of Mute.
  show({ transport, call, connecting, reconnecting, conversation, readiness, muted }, pushToTalk) {
    const voice = transport === "voice" && call !== null;
    swap(call !== null || connecting !== null ? [this.#start, this.#stop] : [this.#stop, this.#start]);
    this.#start.disabled = !isOpen(readiness);
    this.#interrupt.disabled = call === null || reconnecting || !canInterrupt(conversation);
    this.#mute.disabled = !voice || pushToTalk;
    this.#mute.setAttribute("aria-pressed", String(muted && voice));
  }
}

// The focus goes with the button that is pressed.
const swap = ([goes, appears]) => {
  const hadFocus = document.activeElement === goes;
  appears.hidden = false;
  goes.hidden = true;
  if (hadFocus) appears.focus();
};
