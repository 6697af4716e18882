// The last seconds of both voices as a picture: yours above the line, Antiphon's below it.

const COLUMNS_PER_S = 20;
const PITCH_PX = 5; // from column to column
const BAR_PX = 3;
const GAP_PX = 3; // between bars and line
const FULL_LEVEL = 0.35; // a loud voice

// Before anything was said: a question and its answer, as they would look.
const EXAMPLE = { from: 0.08, question: 0.24, pause: 0.06, answer: 0.46 };

export class Score {
  #canvas;
  #columns = [];
  #count = 0;
  #slot = -1;
  #still = matchMedia("(prefers-reduced-motion: reduce)");
  #queued = false;

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  clear() {
    this.#columns = [];
    this.#count = 0;
    this.#slot = -1;
    this.draw();
  }

  // Levels are root mean squares, 0 to 1; `at` is in seconds.
  add({ at, you, antiphon }, muted) {
    const slot = Math.floor(at * COLUMNS_PER_S);
    const column = { you: muted ? 0 : height(you), antiphon: height(antiphon) };
    if (slot === this.#slot) {
      const last = this.#columns.at(-1);
      this.#columns[this.#columns.length - 1] = { you: Math.max(last.you, column.you), antiphon: Math.max(last.antiphon, column.antiphon) };
      return; // drawn with the next column
    }
    this.#slot = slot;
    this.#count += 1;
    this.#columns.push(column);
    this.#columns.splice(0, this.#columns.length - 1000);
    this.draw();
  }

  draw() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      this.#paint();
    });
  }

  #paint() {
    const { clientWidth: width, clientHeight: tall } = this.#canvas;
    const scale = devicePixelRatio;
    const pen = this.#canvas.getContext("2d");
    this.#fit(Math.round(width * scale), Math.round(tall * scale));
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, tall);
    const style = getComputedStyle(this.#canvas);
    const [yours, antiphons] = ["--you", "--antiphon"].map((name) => style.getPropertyValue(name).trim());
    pen.globalAlpha = 1;
    pen.fillStyle = style.getPropertyValue("--line").trim();
    pen.fillRect(0, tall / 2 - 0.5, width, 1);
    const places = Math.floor(width / PITCH_PX);
    const shown = this.#columns.length === 0 ? example(places) : this.#placed(places);
    pen.globalAlpha = this.#columns.length === 0 ? 0.3 : 1;
    for (const { place, you, antiphon } of shown) {
      bar(pen, yours, place * PITCH_PX, tall, you, -1);
      bar(pen, antiphons, place * PITCH_PX, tall, antiphon, 1);
    }
  }

  // A canvas that gets its size anew is allocated anew.
  #fit(width, height) {
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
  }

  // The newest at the right, moving left; for people who want no motion each stays at its place until it is written over.
  #placed(places) {
    const recent = this.#columns.slice(-places);
    const first = this.#count - recent.length;
    return recent.map((column, index) => ({
      ...column,
      place: this.#still.matches ? (first + index) % places : places - recent.length + index,
    }));
  }
}

const height = (level) => Math.min(1, Math.sqrt(level / FULL_LEVEL));

const bar = (pen, colour, left, tall, size, direction) => {
  const length = size * (tall / 2 - GAP_PX - 2);
  if (length < 1) return;
  const top = direction < 0 ? tall / 2 - GAP_PX - length : tall / 2 + GAP_PX;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.roundRect(left, top, BAR_PX, length, BAR_PX / 2);
  pen.fill();
};

const example = (places) => {
  const voice = (from, span, place) => {
    const along = (place / places - from) / span;
    if (along < 0 || along > 1) return 0;
    return Math.sin(Math.PI * along) ** 0.4 * (0.34 + 0.62 * Math.abs(Math.sin(place * 0.53) * Math.cos(place * 0.19 + 1)));
  };
  const answer = EXAMPLE.from + EXAMPLE.question + EXAMPLE.pause;
  return Array.from({ length: places }, (_, place) => ({
    place,
    you: voice(EXAMPLE.from, EXAMPLE.question, place),
    antiphon: voice(answer, EXAMPLE.answer, place),
  }));
};
