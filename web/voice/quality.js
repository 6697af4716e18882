// Is the line good? From what the browser counts (getStats) to three figures and a word, once a second.

const KEPT_S = 60;
const RULES = [
  ["good", { lossPercent: 1, jitterMs: 25, roundTripMs: 150 }],
  ["fair", { lossPercent: 5, jitterMs: 60, roundTripMs: 400 }],
];

// The few counters that matter, out of a report. null where the browser does not tell.
export const counters = (report) => {
  const entries = [...report.values()];
  const inbound = entries.find((entry) => entry.type === "inbound-rtp" && entry.kind === "audio");
  const remote = entries.find((entry) => entry.type === "remote-inbound-rtp" && entry.kind === "audio");
  const transport = entries.find((entry) => entry.type === "transport");
  const pair =
    entries.find((entry) => entry.id === transport?.selectedCandidatePairId) ??
    entries.find((entry) => entry.type === "candidate-pair" && entry.nominated && entry.state === "succeeded");
  const roundTripS = pair?.currentRoundTripTime ?? remote?.roundTripTime ?? null;
  return {
    received: inbound?.packetsReceived ?? null,
    lost: inbound?.packetsLost ?? null,
    lostUp: remote?.packetsLost ?? null,
    sentLossFraction: remote?.fractionLost ?? null,
    jitterMs: largest(inbound?.jitter, remote?.jitter) * 1000 || 0,
    roundTripMs: roundTripS === null ? null : roundTripS * 1000,
  };
};

// Loss of the worse direction since the counters before.
export const figures = (before, now) => {
  const received = (now.received ?? 0) - (before?.received ?? 0);
  const lost = Math.max(0, (now.lost ?? 0) - (before?.lost ?? 0));
  const down = received + lost > 0 ? (100 * lost) / (received + lost) : 0;
  const up = now.lostUp === before?.lostUp ? 0 : 100 * (now.sentLossFraction ?? 0);
  return { lossPercent: Math.max(down, up), jitterMs: now.jitterMs, roundTripMs: now.roundTripMs };
};

// The word for the worst of the last seconds' means: one bad second is no bad line.
export const wordFor = (history) => {
  if (history.length === 0) return "unknown";
  const recent = history.slice(-5);
  const mean = (name) => recent.reduce((sum, figure) => sum + (figure[name] ?? 0), 0) / recent.length;
  const fits = (limits) => Object.entries(limits).every(([name, limit]) => mean(name) <= limit);
  return RULES.find(([, limits]) => fits(limits))?.[0] ?? "poor";
};

// Calls `tell(history)` once a second until the returned function is called.
export const watch = (peer, tell) => {
  let before = null;
  let history = [];
  let over = false;
  const timer = setInterval(async () => {
    if (peer.connectionState !== "connected") return;
    const now = counters(await peer.getStats());
    if (over) return;
    history = [...history, figures(before, now)].slice(-KEPT_S);
    before = now;
    tell(history);
  }, 1000);
  return () => {
    over = true;
    clearInterval(timer);
  };
};

const largest = (...values) => Math.max(0, ...values.filter((value) => value !== undefined));
