// What the server is doing before it can talk.

import { byId, make, write } from "./element.js";
import { progressOf } from "./readiness.js";
import { READINESS, STAGES } from "./words.js";

export const showReadiness = (readiness) => {
  const { ready, all } = progressOf(readiness);
  const loading = readiness.status === "loading";
  byId("readiness").dataset.status = readiness.status;
  write(byId("readiness-word"), loading && all > 0 ? `${READINESS.loading} ${ready} of ${all}` : READINESS[readiness.status]);
  byId("loading").hidden = !loading && readiness.status !== "failed";
  write(byId("loading-title"), loading ? "Loading the models" : "Some of the models are out of order");
  showProgress(byId("progress"), ready, all);
  byId("progress").hidden = !loading;
  showStages(byId("stages"), readiness.stages);
};

const showProgress = (bar, ready, all) => {
  bar.setAttribute("aria-valuemax", String(all));
  bar.setAttribute("aria-valuenow", String(ready));
  bar.firstElementChild.style.width = `${all === 0 ? 0 : (100 * ready) / all}%`;
};

const showStages = (list, stages) => {
  const rows = stages.map(stageRow);
  const same = rows.length === list.children.length && rows.every((row, index) => row.isEqualNode(list.children[index]));
  if (!same) list.replaceChildren(...rows);
};

const stageRow = ({ stage, state, note }) =>
  make(
    "li",
    { "data-stage": stage, "data-state": state },
    make("span", { class: "stage-name" }, STAGES[stage] ?? stage, " ", make("code", {}, stage)),
    make("span", { class: "stage-note" }, state === "ready" ? "ready" : note || state),
  );
