// The connection in a few figures, each with its last minute as a line.

import { byId, make, write } from "./element.js";
import { wordFor } from "./quality.js";
import { QUALITY } from "./words.js";

const FIGURES = [
  { id: "round-trip", field: "roundTripMs", name: "Round trip", unit: "ms", digits: 0, least: 20, means: "There and back" },
  { id: "jitter", field: "jitterMs", name: "Jitter", unit: "ms", digits: 0, least: 20, means: "How unevenly packets arrive" },
  { id: "playout", field: "playoutMs", name: "Playout delay", unit: "ms", digits: 0, least: 40, means: "How long sound waits here until it is played, so that late packets make no gap" },
  { id: "loss", field: "lossPercent", name: "Lost to you", unit: "%", digits: 1, least: 2, means: "Of the packets that were sent to you" },
  { id: "loss-up", field: "lossUpPercent", name: "Lost from you", unit: "%", digits: 1, least: 2, means: "Of the packets that were sent by you" },
  { id: "concealed", field: "concealedPercent", name: "Made up", unit: "%", digits: 1, least: 2, means: "Of the sound that was played: a guess, in place of what was lost or late" },
];
const WIDTH = 120;
const HEIGHT = 24;
const SECONDS = 60;
const SVG = "http://www.w3.org/2000/svg";

export class ConnectionPanel {
  #word = byId("quality");
  #cells;

  constructor() {
    this.#cells = FIGURES.map((figure) => ({ figure, value: make("span", { id: figure.id, class: "figure-value" }, "–"), line: sparkline() }));
    for (const { figure, value, line } of this.#cells) {
      byId("figures").append(make("div", { class: "figure", title: figure.means }, make("dt", {}, figure.name), make("dd", {}, value), line.svg));
    }
  }

  // `history` is what a LineWatch tells; null: there is no call by voice.
  show(history, without = "no call") {
    const word = history === null ? "unknown" : wordFor(history);
    this.#word.dataset.word = word;
    write(this.#word, history === null ? without : QUALITY[word]);
    for (const { figure, value, line } of this.#cells) {
      const values = (history ?? []).map((figures) => figures[figure.field]);
      const latest = values.at(-1) ?? null;
      write(value, latest === null ? "–" : shown(latest, figure));
      line.path.setAttribute("points", points(values, figure.least));
    }
  }
}

const shown = (value, { digits, unit }) => (digits === 0 && value < 1 ? `< 1 ${unit}` : `${value.toFixed(digits)} ${unit}`);

const sparkline = () => {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "polyline");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "sparkline");
  svg.append(path);
  return { svg, path };
};

// The newest at the right; a minute fills the width.
const points = (values, least) => {
  const top = Math.max(least, ...values.map((value) => value ?? 0));
  const x = (index) => WIDTH - ((values.length - 1 - index) * WIDTH) / (SECONDS - 1);
  const y = (value) => HEIGHT - 1.5 - ((value ?? 0) / top) * (HEIGHT - 3);
  return values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
};
