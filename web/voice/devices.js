// Which microphone, which loudspeaker. Names are known only after the microphone was allowed once.

import { make } from "./element.js";

export class Devices {
  #microphone;
  #speaker;
  #audio;

  // `on.microphone(deviceId)` when another one was chosen.
  constructor({ microphone, speaker, speakerField, audio, on }) {
    this.#microphone = microphone;
    this.#speaker = speaker;
    this.#audio = audio;
    speakerField.hidden = !("setSinkId" in HTMLMediaElement.prototype);
    microphone.addEventListener("change", () => on.microphone(microphone.value));
    speaker.addEventListener("change", () => this.#audio.setSinkId(speaker.value));
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
  }

  get microphoneId() {
    return this.#microphone.value;
  }

  async refresh() {
    const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    fill(this.#microphone, "Default microphone", devices, "audioinput");
    fill(this.#speaker, "Default speaker", devices, "audiooutput");
  }
}

// Keeps the choice while its device is there.
const fill = (select, first, devices, kind) => {
  const chosen = select.value;
  const known = devices.filter((device) => device.kind === kind && !["", "default", "communications"].includes(device.deviceId));
  const options = known.map((device, index) => make("option", { value: device.deviceId }, device.label || `${kind === "audioinput" ? "Microphone" : "Speaker"} ${index + 1}`));
  select.replaceChildren(make("option", { value: "" }, first), ...options);
  select.value = known.some((device) => device.deviceId === chosen) ? chosen : "";
};
