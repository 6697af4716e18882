// Is the server there, and what is still loading? Asks `/readyz` for as long as the page is open.

const ANSWER_WITHIN_MS = 4000;
const AGAIN_MS = { ready: 3000, failed: 3000, loading: 500, draining: 1000, unreachable: 1000 };

export const UNKNOWN = Object.freeze({ status: "unknown", stages: [] });
const UNREACHABLE = Object.freeze({ status: "unreachable", stages: [] });

// A report as the page needs it: its stages in order, the unready ones with what they are doing.
export const understood = (report) => ({ status: report.status, stages: Object.values(report.stages) });

// Failed stages close only what needs them, so the page lets people try.
export const isOpen = ({ status }) => status === "ready" || status === "failed";

export const progressOf = ({ stages }) => ({ ready: stages.filter((stage) => stage.state === "ready").length, all: stages.length });

// Calls `tell(readiness)` after each answer.
export class Watch {
  #tell;
  #timer = null;

  constructor(tell) {
    this.#tell = tell;
  }

  // Ask at once, and from then on again and again.
  async look() {
    clearTimeout(this.#timer);
    const readiness = await ask();
    this.#tell(readiness);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), AGAIN_MS[readiness.status] ?? 1000);
  }
}

// What it says now.
export const ask = async () => {
  try {
    const answer = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    return understood(await answer.json());
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError) return UNREACHABLE;
    throw error;
  }
};
