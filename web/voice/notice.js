// What is wrong, what to do, and the buttons that do it.

import { make } from "./element.js";
import { explain } from "./words.js";

const WAYS = { retry: "Try again", text: "Continue by text", listen: "Play the sound" };

export class Notice {
  #place;
  #on;
  #shown = "";

  // `on.retry()`, `on.text()`, `on.listen()`, `on.key(key)`.
  constructor(place, on) {
    this.#place = place;
    this.#on = on;
  }

  // null: all is well. `open`: the server can be called now.
  show(problem, open) {
    const told = problem === null ? null : explain(problem, open);
    const key = JSON.stringify(told);
    if (key === this.#shown) return; // an alert that is written again is read again
    this.#shown = key;
    this.#place.classList.toggle("shown", problem !== null);
    if (problem === null) {
      delete this.#place.dataset.problem;
      this.#place.replaceChildren();
      return;
    }
    const { title, advice, detail, ways } = told;
    this.#place.dataset.problem = problem.code;
    this.#place.replaceChildren(
      make("h2", { class: "notice-title" }, title),
      make("p", {}, advice),
      ...(detail ? [make("p", { class: "notice-detail" }, detail)] : []),
      ...ways.map((way) => this.#way(way)),
    );
  }

  #way(way) {
    if (way === "key") return this.#keyForm();
    const button = make("button", { type: "button", class: "button" }, WAYS[way]);
    button.addEventListener("click", () => this.#on[way]());
    return button;
  }

  #keyForm() {
    const input = make("input", { id: "key", type: "password", autocomplete: "off", required: "" });
    const form = make("form", { class: "key-form" }, make("label", { for: "key" }, "API key"), input, make("button", { class: "button" }, "Use this key"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#on.key(input.value.trim());
    });
    return form;
  }
}
