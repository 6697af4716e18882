// A browser of the tests' own: its person and its server answer when the test says so.

export class Track extends EventTarget {
  live = true;
  stop() {
    this.live = false;
  }
}

export class Stream {
  constructor(tracks = [new Track()]) {
    this.tracks = tracks;
  }
  getTracks = () => this.tracks;
  getAudioTracks = () => this.tracks;
}

class Node {
  connect() {}
  disconnect() {}
  port = {};
}

export class Peer extends EventTarget {
  static all = [];
  connectionState = "new";
  localDescription = { sdp: "offer" };
  constructor() {
    super();
    Peer.all.push(this);
  }
  addTrack = (track) => {
    this.sent = track;
    return {
      replaceTrack: async (other) => {
        if (this.connectionState === "closed") throw new DOMException("closed", "InvalidStateError");
        this.sent = other;
      },
    };
  };
  createDataChannel = () => (this.channel = Object.assign(new EventTarget(), { readyState: "connecting", send() {} }));
  setConfiguration(configuration) {
    this.configuration = configuration;
  }
  setLocalDescription = async () => {};
  setRemoteDescription = async () => {
    this.dispatchEvent(Object.assign(new Event("track"), { track: new Track(), receiver: this.receiver }));
    this.turn("connected");
    this.channel.readyState = "open";
  };
  receiver = { jitterBufferTarget: null, getStats: async () => new Map() };
  getReceivers = () => [this.receiver];
  getStats = async () => new Map();
  turn(state) {
    this.connectionState = state;
    this.dispatchEvent(new Event("connectionstatechange"));
  }
  say(event) {
    this.channel.dispatchEvent(Object.assign(new Event("message"), { data: JSON.stringify(event) }));
  }
  close() {
    this.connectionState = "closed";
  }
}

// What was asked for, in its order: the microphones wait for the person, the answers for the server.
export const asked = { microphones: [], answers: [], offers: [], hangUps: [] };
const waiting = (list) => () => new Promise((resolve) => list.push(resolve));

export const forget = () => {
  for (const list of [...Object.values(asked), Peer.all]) list.length = 0;
};

export const TURN = { urls: "turn:127.0.0.1:3478", username: "u", credential: "c" };
export const ANSWER = { ok: true, text: async () => "answer", headers: new Headers({ Location: "/v1/realtime/calls/1" }) };
export const created = (token) => ({ type: "session.created", session: { id: "s" }, resume: { token, seq: 1, expires_at: Date.now() / 1000 + 60 } });
export const settled = () => new Promise((resolve) => setImmediate(resolve));

const answered = (json) => Promise.resolve({ ok: true, json: async () => json });

Object.assign(globalThis, {
  window: Object.assign(new EventTarget(), { isSecureContext: true, RTCPeerConnection: Peer }),
  RTCPeerConnection: Peer,
  MediaStream: Stream,
  AudioWorkletNode: Node,
  AudioContext: class {
    audioWorklet = { addModule: async () => {} };
    createMediaStreamSource = () => new Node();
    resume = async () => {};
    close = async () => {};
  },
  fetch: (url) => {
    if (url.endsWith("ice_servers")) return answered([TURN]);
    if (url === "/readyz") return answered({ status: "ready", stages: {} });
    if (url === "/v1/models") return answered({});
    if (url.endsWith("/hangup")) {
      asked.hangUps.push(url);
      return answered({});
    }
    asked.offers.push(url);
    return waiting(asked.answers)();
  },
});

Object.defineProperty(globalThis, "navigator", {
  value: {
    onLine: true,
    mediaDevices: Object.assign(new EventTarget(), {
      getUserMedia: waiting(asked.microphones),
      enumerateDevices: async () => [{ kind: "audioinput", deviceId: "" }],
    }),
  },
});
