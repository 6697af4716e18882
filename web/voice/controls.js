// Which buttons there are, and which can be pressed.

import { canInterrupt } from "./conversation.js";
import { isOpen } from "./readiness.js";

export class Controls {
  // Elements by name: main, start, stop, interrupt, mute, send.
  constructor(elements) {
    this.elements = elements;
  }

  show(state) {
    const { main, start, stop, interrupt, mute, send } = this.elements;
    const connecting = state.connecting !== null;
    const voice = state.transport === "voice" && state.call !== null;
    swap(state.call !== null || connecting ? [start, stop] : [stop, start]);
    start.disabled = !isOpen(state.readiness);
    interrupt.disabled = state.call === null || !canInterrupt(state.conversation);
    mute.disabled = !voice;
    mute.setAttribute("aria-pressed", String(state.muted && voice));
    main.toggleAttribute("data-muted", state.muted && voice);
    send.disabled = connecting || (state.call === null && !isOpen(state.readiness));
  }
}

// The focus goes with the button that is pressed.
const swap = ([goes, appears]) => {
  const hadFocus = document.activeElement === goes;
  appears.hidden = false;
  goes.hidden = true;
  if (hadFocus) appears.focus();
};
