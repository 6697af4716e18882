// Both sides of the conversation, as they are said. Turns keep their elements, so that nothing is read out twice.

import { make, write } from "./element.js";

const NAMES = { user: "You", assistant: "Antiphon" };
const NEAR_END_PX = 80;

export class Transcript {
  #log;
  #shown = new Map();

  constructor(log) {
    this.#log = log;
  }

  show(turns) {
    const follows = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < NEAR_END_PX;
    this.#forget(new Set(turns.map((turn) => turn.id)));
    turns.forEach((turn, place) => this.#place(turn, place));
    if (follows) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #forget(kept) {
    for (const [id, { element }] of this.#shown) {
      if (kept.has(id)) continue;
      element.remove();
      this.#shown.delete(id);
    }
  }

  #place(turn, place) {
    let known = this.#shown.get(turn.id);
    if (known === undefined) {
      known = { element: isLine(turn) ? rule(turn) : article(turn), turn: null };
      this.#shown.set(turn.id, known);
    }
    if (this.#log.children[place] !== known.element) this.#log.insertBefore(known.element, this.#log.children[place] ?? null);
    if (known.turn !== turn && !isLine(turn)) fill(known.element, turn);
    known.turn = turn;
  }
}

// Between the turns: a new conversation, a line that was lost and is back.
const isLine = (turn) => turn.role === "divider" || turn.role === "mark";

const rule = (turn) => make("p", { class: turn.role }, make("span", {}, turn.text));

const article = (turn) =>
  make(
    "article",
    { class: "turn", "data-role": turn.role, "data-item": turn.id },
    make("h3", { class: "who" }, NAMES[turn.role]),
    make("p", { class: "words" }, make("span", { class: "said" }), make("s", { class: "unsaid" })),
    make("p", { class: "note" }),
  );

// Busy while it grows: screen readers wait for the whole of it.
const fill = (element, turn) => {
  element.dataset.status = turn.status;
  element.setAttribute("aria-busy", String(turn.status === "pending" || turn.status === "streaming"));
  const [said, unsaid] = element.querySelector(".words").children;
  const unheard = turn.unsaid.trimStart();
  write(said, turn.text + turn.unsaid.slice(0, turn.unsaid.length - unheard.length));
  write(unsaid, unheard);
  write(element.querySelector(".note"), turn.note);
};
