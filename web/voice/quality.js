// Is the line good? From what the browser counts (getStats) to a few figures and a word, once a second.

const KEPT_S = 60;
const WINDOW_S = 5; // one bad second is no bad line
const RULES = [
  ["good", { lossPercent: 1, lossUpPercent: 1, jitterMs: 25, roundTripMs: 150 }],
  ["fair", { lossPercent: 5, lossUpPercent: 5, jitterMs: 60, roundTripMs: 400 }],
];

// The few counters that matter, out of a report. null where the browser does not tell.
export const counters = (report) => {
  const entries = [...report.values()];
  const audio = (type) => entries.find((entry) => entry.type === type && entry.kind === "audio");
  const [inbound, outbound, remote] = [audio("inbound-rtp"), audio("outbound-rtp"), audio("remote-inbound-rtp")];
  const transport = entries.find((entry) => entry.type === "transport");
  const pair =
    entries.find((entry) => entry.id === transport?.selectedCandidatePairId) ??
    entries.find((entry) => entry.type === "candidate-pair" && entry.nominated && entry.state === "succeeded");
  const roundTripS = pair?.currentRoundTripTime ?? remote?.roundTripTime ?? null;
  return {
    received: inbound?.packetsReceived ?? null,
    lost: inbound?.packetsLost ?? null,
    sent: outbound?.packetsSent ?? null,
    lostUp: remote?.packetsLost ?? null,
    samples: inbound?.totalSamplesReceived ?? null,
    concealed: inbound?.concealedSamples ?? null,
    emitted: inbound?.jitterBufferEmittedCount ?? null,
    waitedS: inbound?.jitterBufferDelay ?? null,
    jitterMs: largest(inbound?.jitter, remote?.jitter) * 1000 || 0,
    roundTripMs: roundTripS === null ? null : roundTripS * 1000,
  };
};

// From the counters before, or from the beginning, until now. null: nothing to tell it by.
export const figures = (before, now) => {
  const since = (name) => Math.max(0, (now[name] ?? 0) - (before?.[name] ?? 0));
  const played = since("samples");
  const emitted = since("emitted");
  return {
    lossPercent: percent(since("lost"), since("lost") + since("received")),
    lossUpPercent: percent(since("lostUp"), since("sent")),
    concealedPercent: played === 0 ? null : percent(since("concealed"), played),
    jitterMs: now.jitterMs,
    roundTripMs: now.roundTripMs,
    playoutMs: emitted === 0 ? null : (1000 * since("waitedS")) / emitted,
  };
};

export const wordFor = (history) => {
  const latest = history.at(-1);
  if (latest === undefined) return "unknown";
  const fits = (limits) => Object.entries(limits).every(([name, limit]) => (latest[name] ?? 0) <= limit);
  return RULES.find(([, limits]) => fits(limits))?.[0] ?? "poor";
};

// Calls `tell(history)` once a second: the figures of the last five seconds, for each of the last sixty.
export class LineWatch {
  #tell;
  #history = [];
  #timer = null;

  constructor(tell) {
    this.#tell = tell;
  }

  // From now on over this connection, in place of the one before.
  over(peer) {
    this.stop();
    const seen = [];
    const timer = setInterval(async () => {
      const now = counters(await peer.getStats());
      if (timer !== this.#timer) return;
      this.#history = [...this.#history, figures(seen.at(-WINDOW_S) ?? null, now)].slice(-KEPT_S);
      seen.push(now);
      seen.splice(0, seen.length - WINDOW_S);
      this.#tell(this.#history);
    }, 1000);
    this.#timer = timer;
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

const largest = (...values) => Math.max(0, ...values.filter((value) => value !== undefined));

const percent = (part, whole) => (whole === 0 ? 0 : Math.min(100, (100 * part) / whole));
