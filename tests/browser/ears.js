// Put into a page before its own scripts: hears what its microphone and its remote audio carry, on one clock, and notes when
// calls connect, what the data channel says and what the jitter buffer had to make up. The page does not notice, except that
// the browser's processing of the microphone is switched off. `ears.report()` gives everything; times are seconds of the
// audio clock, except for `connects`.
(() => {
  const MICROPHONE = 0;
  const REMOTE = 1;
  const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const STATS_EVERY_MS = 100;
  const QUIET_S = 0.3;

  // Voiced: the root mean square of four quanta (10.7 ms) is above 0.01, as the other benchmarks have it.
  const WORKLET = `
    class Ears extends AudioWorkletProcessor {
      constructor() {
        super();
        this.recent = [[0, 0, 0, 0], [0, 0, 0, 0]];
        this.voiced = [false, false];
      }
      process(inputs) {
        inputs.forEach((input, who) => {
          const recent = this.recent[who];
          recent.shift();
          recent.push(input.length ? input[0].reduce((sum, sample) => sum + sample * sample, 0) : 0);
          const voiced = recent[0] + recent[1] + recent[2] + recent[3] > 4 * 128 * 1e-4;
          if (voiced !== this.voiced[who]) {
            this.voiced[who] = voiced;
            this.port.postMessage([who, voiced, currentTime]);
          }
        });
        return true;
      }
    }
    registerProcessor('ears', Ears);`;

  const heard = { edges: [[], []], events: [], states: [], stats: [] };
  const channels = [];
  const streams = [null, null];
  const sources = [null, null];
  const quietSince = [0, 0];
  let fresh = true;
  const context = new AudioContext({ sampleRate: 48000 });
  const ready = context.audioWorklet.addModule(`data:text/javascript,${encodeURIComponent(WORKLET)}`).then(() => {
    const node = new AudioWorkletNode(context, 'ears', { numberOfInputs: 2 });
    node.port.onmessage = ({ data: [who, voiced, at] }) => {
      heard.edges[who].push([voiced, at]);
      quietSince[who] = voiced ? Infinity : at;
      fresh = false;
    };
    node.connect(context.destination); // it gives silence, but Chromium only runs what is connected
    return node;
  });

  async function listen(who, stream) {
    streams[who] = stream;
    tap(await ready, who);
  }

  function tap(node, who) {
    sources[who]?.disconnect();
    sources[who] = context.createMediaStreamSource(streams[who]);
    sources[who].connect(node, 0, who);
  }

  // What comes in while a busy machine holds up the audio clock waits before a tap, and delays all that follows. Once in each
  // silence of both there is a fresh tap, with nothing before it.
  async function refresh() {
    const node = await ready;
    if (fresh || context.currentTime - Math.max(...quietSince) < QUIET_S) return;
    fresh = true;
    [MICROPHONE, REMOTE].filter((who) => streams[who]).forEach((who) => tap(node, who));
  }
  setInterval(refresh, 100);

  const devices = navigator.mediaDevices;
  const getUserMedia = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    const audio = wanted.audio === true ? {} : wanted.audio;
    const stream = await getUserMedia({ ...wanted, audio: audio && { ...audio, ...RAW } });
    await listen(MICROPHONE, stream);
    return stream;
  };

  async function count(connection) {
    for (const one of (await connection.getStats()).values()) {
      if (one.type !== 'inbound-rtp' || one.kind !== 'audio') continue;
      heard.stats.push({
        at: context.currentTime,
        received: one.packetsReceived,
        lost: one.packetsLost,
        concealed: one.concealedSamples,
        emitted: one.jitterBufferEmittedCount,
        waited_s: one.jitterBufferDelay,
      });
    }
  }

  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...settings) {
      super(...settings);
      const counting = setInterval(() => this.connectionState === 'closed' ? clearInterval(counting) : count(this), STATS_EVERY_MS);
      this.addEventListener('track', ({ track }) => listen(REMOTE, new MediaStream([track])));
      this.addEventListener('connectionstatechange', () => heard.states.push([this.connectionState, performance.now()]));
    }

    createDataChannel(...settings) {
      const channel = super.createDataChannel(...settings);
      channels.push(channel);
      channel.addEventListener('message', ({ data }) => heard.events.push([context.currentTime, data]));
      return channel;
    }
  };

  // From the start of the last offer's request to its connection, of each call that got so far.
  function connects() {
    const offers = performance.getEntriesByType('resource').filter((one) => new URL(one.name).pathname === '/v1/realtime/calls');
    const connected = heard.states.filter(([state]) => state === 'connected');
    return connected.map(([, at]) => at - Math.max(...offers.map((one) => one.startTime).filter((start) => start < at)));
  }

  // Seconds in which the microphone carried voice since then.
  function spoke(since) {
    const ends = heard.edges[MICROPHONE].map(([, at]) => Math.max(at, since)).concat(context.currentTime);
    return heard.edges[MICROPHONE].reduce((sum, [voiced], n) => sum + (voiced ? Math.max(ends[n + 1] - ends[n], 0) : 0), 0);
  }

  window.ears = {
    spoke,
    report: () => ({ ...heard, connects: connects(), now: context.currentTime }),
    now: () => context.currentTime,
    send: (event) => channels.at(-1).send(JSON.stringify(event)),
    said: (type) => heard.events.filter(([, text]) => JSON.parse(text).type === type).length,
  };
})();
