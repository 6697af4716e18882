// What a tab or a browser keeps for the page. Where pages may keep nothing, it is forgotten with the page.

const store = (name) => {
  try {
    return globalThis[name] ?? null;
  } catch (error) {
    if (error instanceof DOMException) return null; // all site data is blocked
    throw error;
  }
};

export class Kept {
  #where;
  #place;
  #value;

  // `where`: "sessionStorage", for this tab and its reloads, or "localStorage", for this browser.
  constructor(where, place) {
    this.#where = where;
    this.#place = place;
    this.#value = store(where)?.getItem(place) ?? null;
  }

  // A string, or null for none.
  get value() {
    return this.#value;
  }

  set value(value) {
    this.#value = value;
    if (value === null) store(this.#where)?.removeItem(this.#place);
    else store(this.#where)?.setItem(this.#place, value);
  }
}
