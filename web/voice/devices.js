// Which microphone, which loudspeaker. Names are known only after the microphone was allowed once.

import { byId, make } from "./element.js";

export class Devices {
  #microphone = byId("microphone");
  #speaker = byId("speaker");

  // `audio` plays the other's voice. `on.microphone(deviceId)` when another one was chosen; `on.found(any)` when some came or went:
  // whether there is a microphone at all.
  constructor(audio, on) {
    byId("speaker-field").hidden = !("setSinkId" in HTMLMediaElement.prototype);
    this.#microphone.addEventListener("change", () => on.microphone(this.#microphone.value));
    this.#speaker.addEventListener("change", () => audio.setSinkId(this.#speaker.value).catch(reportError));
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh().then(on.found));
  }

  get microphoneId() {
    return this.#microphone.value;
  }

  // Resolves to whether there is a microphone at all.
  async refresh() {
    if (!navigator.mediaDevices) return false;
    const devices = await navigator.mediaDevices.enumerateDevices();
    fill(this.#microphone, "Default microphone", devices, "audioinput");
    fill(this.#speaker, "Default speaker", devices, "audiooutput");
    return devices.some((device) => device.kind === "audioinput");
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
