// What the server is doing before it can talk.

import { make, write } from "./element.js";
import { progressOf } from "./readiness.js";
import { READINESS, STAGES } from "./words.js";

export const showReadiness = ({ lamp, word, section, progress, list }, readiness) => {
  lamp.dataset.status = readiness.status;
  const { ready, all } = progressOf(readiness);
  const loading = readiness.status === "loading";
  write(word, loading && all > 0 ? `${READINESS.loading} ${ready} of ${all}` : READINESS[readiness.status]);
  section.hidden = !loading && readiness.status !== "failed";
  write(section.querySelector("h2"), loading ? "Loading the models" : "Some of the models are out of order");
  progress.hidden = !loading;
  progress.setAttribute("aria-valuemax", String(all));
  progress.setAttribute("aria-valuenow", String(ready));
  progress.firstElementChild.style.width = `${all === 0 ? 0 : (100 * ready) / all}%`;
  const rows = readiness.stages.map(stageRow);
  if (rows.some((row, index) => !row.isEqualNode(list.children[index])) || list.children.length !== rows.length) list.replaceChildren(...rows);
};

const stageRow = ({ stage, state, note }) =>
  make(
    "li",
    { "data-stage": stage, "data-state": state },
    make("span", { class: "stage-name" }, STAGES[stage] ?? stage, " ", make("code", {}, stage)),
    make("span", { class: "stage-note" }, state === "ready" ? "ready" : note || state),
  );
