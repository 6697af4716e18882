// Push to talk: the microphone is open only while the button or the space bar is held. Whether it is on is remembered.

import { byId } from "./element.js";
import { Kept } from "./keeping.js";

const ON = "on";
// Where the space bar has a meaning of its own.
const OWN_SPACE = "input, textarea, select, button, summary, a[href], [contenteditable]";

export class PushToTalk {
  #kept = new Kept("localStorage", "antiphon.push-to-talk");
  #toggle = byId("push-to-talk");
  #button = byId("hold");
  #changed;
  #calling = false;
  #byKey = false;

  on = this.#kept.value === ON;
  held = false;

  // `changed()` is called at once when `on` or `held` is another.
  constructor(changed) {
    this.#changed = changed;
    this.#toggle.addEventListener("click", () => this.#turn(!this.on));
    this.#button.addEventListener("pointerdown", (event) => this.#press(event));
    this.#button.addEventListener("lostpointercapture", () => this.#hold(false));
    this.#button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch
    this.#button.addEventListener("click", (event) => {
      if (event.detail === 0) this.#hold(!this.held); // by an assistant, or by Enter: who cannot hold presses twice
    });
    this.#button.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.repeat) event.preventDefault(); // a key that is held would click again and again
    });
    byId("call").addEventListener("mousedown", (event) => this.#freeSpace(event));
    document.addEventListener("keydown", (event) => this.#keyDown(event));
    document.addEventListener("keyup", (event) => this.#keyUp(event));
    window.addEventListener("blur", () => this.#hold(false));
    document.addEventListener("visibilitychange", () => this.#hold(false));
  }

  // It is on, and nobody talks.
  get waiting() {
    return this.on && !this.held;
  }

  show({ transport, call, reconnecting }) {
    this.#calling = transport === "voice" && call !== null;
    if (!this.#calling) this.held = false;
    this.#toggle.setAttribute("aria-pressed", String(this.on));
    this.#button.setAttribute("aria-pressed", String(this.held));
    this.#button.hidden = !this.on || !this.#calling;
    this.#button.disabled = reconnecting;
  }

  #turn(on) {
    this.on = on;
    this.held = false;
    this.#kept.value = on ? ON : null;
    this.#changed();
  }

  #hold(held) {
    if (held === this.held || (held && !(this.on && this.#calling))) return;
    this.held = held;
    this.#byKey = false;
    this.#changed();
  }

  #press(event) {
    if (event.button !== 0) return;
    this.#button.setPointerCapture(event.pointerId); // so that the release is heard wherever it happens
    this.#hold(true);
  }

  // A button that was clicked would have the space bar from then on, a text field keep it. Who uses the keyboard keeps the focus.
  #freeSpace(event) {
    if (!this.on && event.target !== this.#toggle) return;
    event.preventDefault();
    document.activeElement?.blur();
  }

  #keyDown(event) {
    if (event.code !== "Space" || !this.on || !this.#calling || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const own = event.target.closest(OWN_SPACE);
    if (own !== null && own !== this.#button) return;
    event.preventDefault(); // it neither scrolls nor clicks
    if (event.repeat) return;
    this.#hold(true);
    this.#byKey = this.held;
  }

  #keyUp(event) {
    if (event.code !== "Space" || !this.#byKey) return;
    event.preventDefault();
    this.#hold(false);
  }
}
