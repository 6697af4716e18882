// What a look at the server means for the conversation. Pure.

import { isOpen } from "./readiness.js";
import { Problem } from "./words.js";

const GONE_AFTER_LOOKS = 2; // one may go astray
const UNTIL_REACHABLE = ["unreachable", "not_ready"];

// The server has not answered for so long that a connection with it is lost, whatever it looks like.
export const isGone = (unanswered) => unanswered >= GONE_AFTER_LOOKS;

export const unansweredAfter = (unanswered, readiness) => (readiness.status === "unreachable" ? unanswered + 1 : 0);

// The problem to be shown now, given the one that is shown.
export const problemAfter = (problem, readiness, inCall) => {
  if (readiness.status !== "unreachable") {
    const over = UNTIL_REACHABLE.includes(problem?.code) && (problem.code === "unreachable" || isOpen(readiness));
    return over ? null : problem;
  }
  if (inCall) return problem;
  if (problem === null) return new Problem("unreachable");
  return problem.code === "lost" ? new Problem("server_stopped") : problem;
};
