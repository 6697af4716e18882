// One connection of a call by voice: microphone and loudspeaker over WebRTC, events over its data channel. A line of a Contact.

import { watchPulse } from "./pulse.js";
import { hangUp, offerCall } from "./signalling.js";
import { microphoneProblem, Problem } from "./words.js";

const CONNECT_WITHIN_MS = 10_000;
const RECONNECT_WITHIN_MS = 4_000; // the next attempt may find a better way

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
  #iceServers;
  #location = null;
  #over = false;
  #stopPulse = () => {};

  // `microphone` stays the caller's. `iceServers` is a promise. `on.remote(stream)` gives the other's voice when it can flow,
  // `on.queued(place)` tells where it stands while all seats are taken.
  constructor({ microphone, iceServers, on }) {
    this.#on = on;
    this.#iceServers = iceServers;
    this.peer = new RTCPeerConnection();
    this.#sender = this.peer.addTrack(microphone.getAudioTracks()[0], microphone);
    this.#channel = this.peer.createDataChannel("oai-events");
    this.peer.addEventListener("track", ({ track, receiver }) => this.#hear(track, receiver));
    this.#channel.addEventListener("message", ({ data }) => on.event(JSON.parse(data)));
  }

  // Resolves when events flow. `resume` is the token of the conversation to come back to. Throws Problem or what `signal` says.
  async connect({ resume, signal }) {
    this.peer.setConfiguration({ iceServers: await this.#iceServers });
    signal.throwIfAborted();
    await this.peer.setLocalDescription();
    const { sdp, location } = await offerCall(this.peer.localDescription.sdp, resume, this.#on.queued, signal);
    if (signal.aborted) hangUp(location); // given up meanwhile; the seat that was taken is given back
    signal.throwIfAborted();
    this.#location = location;
    await this.peer.setRemoteDescription({ type: "answer", sdp });
    signal.throwIfAborted();
    await this.#connected(resume === null ? CONNECT_WITHIN_MS : RECONNECT_WITHIN_MS, signal);
    this.#channel.addEventListener("close", () => this.#lost());
    this.peer.addEventListener("connectionstatechange", () => this.#watch());
    this.#stopPulse = watchPulse(this.peer.getReceivers()[0], (stillMs) => this.#lost(stillMs));
  }

  send(event) {
    if (this.#channel.readyState === "open") this.#channel.send(JSON.stringify(event));
  }

  async useMicrophone(microphone) {
    if (!this.#over) await this.#sender.replaceTrack(microphone.getAudioTracks()[0]);
  }

  // Tells the server, too. Harmless when it is over already.
  close() {
    if (this.#over) return;
    this.drop();
    if (this.#location !== null) hangUp(this.#location);
  }

  drop() {
    this.#over = true;
    this.#stopPulse();
    this.peer.close();
  }

  // Played without a buffer of more than the line needs.
  #hear(track, receiver) {
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
    this.peer.addEventListener("connectionstatechange", () => {
      if (this.peer.connectionState === "connected") this.#on.remote(new MediaStream([track]));
    });
  }

  #connected(withinMs, signal) {
    return new Promise((resolve, reject) => {
      const blocked = () => reject(new Problem("udp_blocked"));
      const timer = setTimeout(blocked, withinMs);
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

  #watch() {
    if (["disconnected", "failed", "closed"].includes(this.peer.connectionState)) this.#lost();
  }

  #lost(stillMs = 0) {
    this.#stopPulse();
    if (!this.#over) this.#on.lost(new Problem("lost"), stillMs / 1000);
  }
}
