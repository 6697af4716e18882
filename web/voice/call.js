// A call by voice: microphone and loudspeaker over WebRTC, events over its data channel.
//
// Calls and text calls are alike: `send(event)`, `close()`, and `on.event(event)`, `on.ended(problem)` while they are open.

import { hangUp, offerCall } from "./signalling.js";
import { microphoneProblem, Problem } from "./words.js";

const CONNECT_WITHIN_MS = 10_000;
const LOST_AFTER_MS = 5_000;

export const missing = () => {
  if (!window.isSecureContext) return "insecure";
  return "RTCPeerConnection" in window && navigator.mediaDevices?.getUserMedia ? null : "no_webrtc";
};

export const openMicrophone = async (deviceId) => {
  const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  if (deviceId) audio.deviceId = { exact: deviceId };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw microphoneProblem(error);
  }
};

export class Call {
  #on;
  #channel;
  #sender;
  #location = null;
  #over = false;
  #muted = false;
  #lostTimer = null;

  // Resolves when events flow. `on.remote(stream)` gives the other's voice; `signal` gives up. Throws Problem or AbortError.
  static async open({ microphone, on, signal }) {
    const call = new Call(microphone, on);
    try {
      await call.#connect(signal);
      return call;
    } catch (error) {
      call.close();
      throw error;
    }
  }

  constructor(microphone, on) {
    this.#on = on;
    this.microphone = microphone;
    this.peer = new RTCPeerConnection();
    this.#sender = this.peer.addTrack(microphone.getAudioTracks()[0], microphone);
    this.#channel = this.peer.createDataChannel("oai-events");
    this.peer.addEventListener("track", ({ track }) => on.remote(new MediaStream([track])));
    this.#channel.addEventListener("message", ({ data }) => on.event(JSON.parse(data)));
  }

  send(event) {
    if (this.#channel.readyState === "open") this.#channel.send(JSON.stringify(event));
  }

  setMuted(muted) {
    this.#muted = muted;
    for (const track of this.microphone.getAudioTracks()) track.enabled = !muted;
  }

  // Takes the place of the one before. Returns whether the call is still on; when it is over, nothing stays open.
  async useMicrophone(microphone) {
    stop(this.microphone);
    this.microphone = microphone;
    this.setMuted(this.#muted);
    if (!this.#over) await this.#sender.replaceTrack(microphone.getAudioTracks()[0]);
    if (this.#over) stop(microphone);
    return !this.#over;
  }

  // Tells the server, too. Harmless when it is over already.
  close() {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#lostTimer);
    this.peer.close();
    stop(this.microphone);
    if (this.#location !== null) hangUp(this.#location);
  }

  async #connect(signal) {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => this.close(), { once: true });
    await this.peer.setLocalDescription();
    const { sdp, location } = await offerCall(this.peer.localDescription.sdp);
    if (signal.aborted) hangUp(location); // given up meanwhile; the seat that was taken is given back
    signal.throwIfAborted();
    this.#location = location;
    await this.peer.setRemoteDescription({ type: "answer", sdp });
    await this.#connected(signal);
    this.#channel.addEventListener("close", () => this.#end("lost"));
    this.peer.addEventListener("connectionstatechange", () => this.#watch());
  }

  #connected(signal) {
    return new Promise((resolve, reject) => {
      const blocked = () => reject(new Problem("udp_blocked"));
      const timer = setTimeout(blocked, CONNECT_WITHIN_MS);
      const done = (settle) => (value) => {
        clearTimeout(timer);
        settle(value);
      };
      if (this.#channel.readyState === "open") return done(resolve)(); // it can be faster than the promise of the description
      this.#channel.addEventListener("open", done(resolve), { once: true });
      this.peer.addEventListener("connectionstatechange", () => {
        if (this.peer.connectionState === "failed") done(blocked)();
      });
      signal.addEventListener("abort", () => done(reject)(signal.reason), { once: true });
    });
  }

  // A connection may falter and come back; it is lost when it stays away.
  #watch() {
    clearTimeout(this.#lostTimer);
    const state = this.peer.connectionState;
    if (state === "failed" || state === "closed") this.#end("lost");
    if (state === "disconnected") this.#lostTimer = setTimeout(() => this.#end("lost"), LOST_AFTER_MS);
  }

  #end(code) {
    if (this.#over) return;
    this.close();
    this.#on.ended(new Problem(code));
  }
}

const stop = (stream) => {
  for (const track of stream.getTracks()) track.stop();
};
