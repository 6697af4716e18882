// How loud the microphone is, ten times a second: fast enough for eyes, slow enough for screen readers.

const INTERVAL_S = 0.1;
const FULL_LEVEL = 0.25; // a loud voice

export class Meter {
  #element;
  #shownAt = 0;

  constructor(element) {
    this.#element = element;
  }

  add({ at, you }, muted) {
    const since = at - this.#shownAt;
    if (since >= 0 && since < INTERVAL_S) return; // each call has a clock of its own, so it may run back
    this.#shownAt = at;
    this.#show(muted ? 0 : Math.min(1, Math.sqrt(you / FULL_LEVEL)));
  }

  clear() {
    this.#show(0);
  }

  #show(share) {
    this.#element.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    this.#element.firstElementChild.style.width = `${100 * share}%`;
  }
}
