// Trying again after a loss, until it works, is refused for good, or comes too late.

import { Problem } from "./words.js";

const PAUSES_S = [0.25, 0.5, 1, 2]; // the last one again and again
const MAY_PASS = ["unreachable", "udp_blocked", "not_ready", "full", "text_refused", "server_failed"];

// What `attempt()` resolves to. Throws the Problem that ends it: of the last attempt, or "lost" when `graceS` are over, or what
// `signal` gives as its reason. `rest(seconds, signal)` waits.
export const comeBack = async ({ attempt, graceS, signal, rest = restOrOnline, now = () => performance.now() / 1000 }) => {
  const endS = now() + graceS;
  for (let count = 0; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Problem) || !MAY_PASS.includes(error.code)) throw error;
    }
    const pauseS = PAUSES_S[Math.min(count, PAUSES_S.length - 1)];
    if (now() + pauseS >= endS) throw new Problem("lost");
    await rest(pauseS, signal);
    signal.throwIfAborted();
  }
};

// It need not wait any longer when the browser has a network again.
const restOrOnline = (seconds, signal) =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    window.addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
