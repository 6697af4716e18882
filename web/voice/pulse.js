// Whether sound still arrives. The server sends a packet each 20 ms, whatever it has to say, so a still count is a dead line.

const STILL_MS = 1500;
const STILL_OFFLINE_MS = 500; // the browser says that it has no network; a server on this machine is still there
const LOOK_MS = 250;

export class Pulse {
  #count = null;
  #movedMs = 0;

  // How long the count of packets has stood still.
  stillMs(count, nowMs) {
    if (count !== this.#count) {
      this.#count = count;
      this.#movedMs = nowMs;
    }
    return nowMs - this.#movedMs;
  }
}

// Calls `stopped(stillMs)` once when nothing arrives any more, unless the returned function was called before.
export const watchPulse = (receiver, stopped) => {
  const pulse = new Pulse();
  let over = false;
  const end = () => {
    over = true;
    clearInterval(timer);
  };
  const timer = setInterval(async () => {
    const count = received(await receiver.getStats());
    const stillMs = pulse.stillMs(count, performance.now());
    if (over || stillMs < (navigator.onLine ? STILL_MS : STILL_OFFLINE_MS)) return;
    end();
    stopped(stillMs);
  }, LOOK_MS);
  return end;
};

const received = (report) => [...report.values()].find((entry) => entry.type === "inbound-rtp")?.packetsReceived ?? 0;
