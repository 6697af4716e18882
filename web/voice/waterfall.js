// The waterfall of each turn on one axis: the latest in full, the ones before as lines, the median of all.

import { make } from "./element.js";
import { alike, arrivalMark, axisOf, barsOf, MARKS, mediansOf, nameOf, shownMs, timed, told } from "./timing.js";

const EARLIER_SHOWN = 6;

export const showWaterfall = (place, table, responses) => {
  const turns = timed(responses);
  place.replaceChildren(...(turns.length === 0 ? [empty()] : picture(turns)));
  table.replaceChildren(caption(), head(), body(turns));
};

const ARRIVALS = { audible: "heard here", first_audio: "at the server", first_token: "first word", transcript: "recognised", decision: "decided" };

const empty = () =>
  make("p", { class: "quiet" }, "Each answer will be drawn here: when your words were recognised, when it was clear that you had finished, the first word, the first sound.");

const picture = (turns) => {
  const latest = turns.at(-1);
  const same = alike(turns, latest.kind);
  const medians = mediansOf(same);
  const recent = turns.slice(-1 - EARLIER_SHOWN);
  const longest = Math.max(...recent.flatMap(({ marks }) => MARKS.map((mark) => marks[mark] ?? 0)));
  const axis = axisOf(Math.max(longest, 100));
  const earlier = recent.slice(0, -1).reverse();
  return [headline(latest, medians, same.length), lanes(latest, medians, axis), ruler(axis), ...history(earlier, axis)];
};

const headline = (latest, medians, count) => {
  const mark = arrivalMark(latest.marks);
  const what = ARRIVALS[mark] + (latest.kind === "typed" ? ", after you sent it" : "");
  const middle = make("span", {}, make("i", { class: "notch-key" }), `median ${shownMs(medians[mark])} over ${count} ${latest.kind} turns`);
  return make("p", { class: "headline" }, make("strong", {}, shownMs(latest.marks[mark])), make("span", {}, what), ...(count > 1 ? [middle] : []));
};

// The latest turn: a lane for each mark, which is the legend, too. A notch shows the median.
const lanes = (latest, medians, axis) => {
  const bars = new Map(barsOf(latest.marks).map((bar) => [bar.mark, bar]));
  const rows = MARKS.filter((mark) => bars.has(mark) || medians[mark] !== null).map((mark) => {
    const bar = bars.get(mark);
    const track = make("span", { class: "track" });
    for (const at of axis.ticks) track.append(at_(make("i", { class: "grid" }), at, axis));
    if (bar !== undefined) track.append(span(make("b", { class: "bar", "data-mark": mark }), bar.from, bar.to, axis));
    if (medians[mark] !== null) track.append(at_(make("i", { class: "notch", title: `median ${shownMs(medians[mark])}` }), medians[mark], axis));
    const title = bar === undefined ? `${nameOf(mark)}: did not happen` : `${nameOf(mark)}: ${shownMs(bar.to)}`;
    return make("li", { class: "lane", title }, make("span", { class: "lane-name" }, nameOf(mark)), track, make("span", { class: "lane-ms" }, shownMs(bar?.to ?? null)));
  });
  const picture = make("ul", { class: "lanes", role: "img", "aria-label": `Latest turn: ${told(latest)}. Median: ${told({ kind: latest.kind, marks: medians })}.` });
  picture.append(...rows);
  return picture;
};

const ruler = (axis) => {
  const labels = axis.ticks.map((at) => at_(make("span", { class: "tick" }, String(at)), at, axis));
  return make("p", { class: "ruler", "aria-hidden": "true" }, make("span", { class: "track" }, ...labels), make("span", { class: "lane-ms" }, "ms"));
};

// Earlier turns, newest first: one line each, coloured by what ended there.
const history = (earlier, axis) => {
  if (earlier.length === 0) return [];
  const rows = earlier.map((turn) => {
    const marks = MARKS.filter((mark) => turn.marks[mark] !== null).sort((a, b) => turn.marks[a] - turn.marks[b]);
    const track = make("span", { class: "track" });
    let from = 0;
    for (const mark of marks) {
      track.append(span(make("b", { class: "bar", "data-mark": mark }), from, turn.marks[mark], axis));
      from = turn.marks[mark];
    }
    return make("li", { class: "lane", title: told(turn) }, track, make("span", { class: "lane-ms" }, shownMs(turn.marks[arrivalMark(turn.marks)])));
  });
  const list = make("ul", { class: "lanes earlier", role: "img", "aria-label": `Earlier turns, newest first: ${earlier.map((turn) => shownMs(turn.marks[arrivalMark(turn.marks)])).join(", ")}` });
  list.append(...rows);
  return [make("p", { class: "earlier-title" }, "Turns before, newest first"), list];
};

const at_ = (element, at, axis) => {
  element.style.left = `${(100 * at) / axis.end}%`;
  return element;
};

const span = (element, from, to, axis) => {
  element.style.width = `${(100 * Math.max(0, to - from)) / axis.end}%`;
  return at_(element, from, axis);
};

const COLUMNS = [...MARKS, "total"];
const HEADS = { transcript: "Words", decision: "Sure", first_token: "First word", first_audio: "Made", audible: "Heard", total: "All out" };

const caption = () => make("caption", {}, "Milliseconds from the end of your speech, or from sending a line");

const head = () => {
  const names = COLUMNS.map((mark) => make("th", { scope: "col", title: mark === "total" ? "The whole answer was made" : nameOf(mark) }, HEADS[mark]));
  return make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Turn"), ...names));
};

const body = (turns) => {
  const rows = turns.map((turn, index) => row(turn.id, `${index + 1}${turn.kind === "typed" ? ", typed" : ""}`, turn.marks));
  return make("tbody", {}, ...rows, ...(turns.length > 0 ? [row("median", "Median", mediansOf(alike(turns, "spoken")))] : []));
};

const row = (id, name, marks) => {
  const cells = COLUMNS.map((mark) => make("td", { "data-mark": mark }, marks[mark] === null ? "–" : String(Math.round(marks[mark]))));
  return make("tr", { "data-response": id }, make("th", { scope: "row" }, name), ...cells);
};
