// A document that has every element it is asked for: enough of one for what the page shows, and for what people do with it.

class Element extends EventTarget {
  dataset = {};
  style = {};
  classList = { toggle() {} };
  children = [];
  #attributes = new Map();
  #first = null;
  textContent = "";
  value = "";

  get firstElementChild() {
    return (this.#first ??= new Element());
  }
  setAttribute(name, value) {
    this.#attributes.set(name, value);
  }
  getAttribute(name) {
    return this.#attributes.get(name) ?? null;
  }
  append(...children) {
    this.children.push(...children.map((child) => (typeof child === "string" ? Object.assign(new Element(), { textContent: child }) : child)));
  }
  replaceChildren(...children) {
    this.children.length = 0;
    this.append(...children);
  }
  insertBefore(child) {
    this.append(child);
  }
  remove() {}
  focus() {}
  setPointerCapture() {}
  closest() {
    return this;
  }
  play = async () => {};

  // A click of the mouse is counted; one that a key or an assistant makes is not.
  click(detail = 0) {
    this.dispatchEvent(Object.assign(new Event("click"), { detail }));
  }

  // As browsers do: Enter clicks a button, again for as long as it is held, unless the page keeps it from that.
  enter({ repeat = false } = {}) {
    const down = Object.assign(new Event("keydown", { cancelable: true }), { key: "Enter", code: "Enter", repeat });
    if (this.dispatchEvent(down)) this.click();
  }
}

class Document extends EventTarget {
  #elements = new Map();
  activeElement = null;

  getElementById(id) {
    if (!this.#elements.has(id)) this.#elements.set(id, new Element());
    return this.#elements.get(id);
  }
  createElement = () => new Element();
  createElementNS = () => new Element();
  querySelectorAll = () => [];
}

const still = { matches: false, addEventListener() {} };

Object.assign(globalThis, {
  HTMLMediaElement: class {},
  ResizeObserver: class {
    observe() {}
  },
  matchMedia: () => still,
  requestAnimationFrame() {},
  reportError(error) {
    throw error;
  },
});

// From now on the page is a new one.
export const load = () => {
  globalThis.document = new Document();
  return (id) => document.getElementById(id);
};
