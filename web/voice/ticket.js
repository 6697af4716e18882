// What the server hands out to come back with: the token of the conversation, and for how long it is held after a loss.
// It is kept for the tab, so that a reload finds it.

import { Kept } from "./keeping.js";

const GRACE_S = 60; // where the server does not say
const LEAST_GRACE_S = 5;
const MOST_GRACE_S = 300; // clocks may differ

export class Ticket {
  #kept = new Kept("sessionStorage", "antiphon.conversation");
  #held;

  constructor() {
    this.#held = JSON.parse(this.#kept.value ?? "null");
  }

  // null: there is nothing to come back to.
  get token() {
    return this.#held?.token ?? null;
  }

  get graceS() {
    return this.#held?.graceS ?? GRACE_S;
  }

  // How the conversation of before the reload was held, "voice" or "text"; null: there is none, or it is held no longer.
  transportAt(nowMs) {
    if (this.#held === null) return null;
    const awayS = (nowMs - (this.#held.leftMs ?? nowMs)) / 1000;
    if (awayS >= this.#held.graceS) this.forget();
    return this.#held?.transport ?? null;
  }

  // The newest counts. `resume` is the field of session.created and session.updated.
  keep({ token, expires_at }, transport, nowMs) {
    const saidS = Number.isFinite(expires_at) ? expires_at - nowMs / 1000 : GRACE_S;
    this.#hold({ token, transport, graceS: Math.min(MOST_GRACE_S, Math.max(LEAST_GRACE_S, saidS)), leftMs: null });
  }

  // The page goes away, and may come back. One that goes again before it was back has left already.
  left(nowMs) {
    if (this.#held !== null && this.#held.leftMs === null) this.#hold({ ...this.#held, leftMs: nowMs });
  }

  forget() {
    this.#held = null;
    this.#kept.value = null;
  }

  #hold(held) {
    this.#held = held;
    this.#kept.value = JSON.stringify(held);
  }
}
