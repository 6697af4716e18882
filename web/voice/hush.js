// Silence at once: when the server has cleared an answer, the browser's jitter buffer still holds a piece of it.

const EMPTIED_MS = 400; // whatever the buffer held is over by then

export class Hush {
  #tracks = [];
  #timer = null;

  // The tracks that play the answers.
  over(stream) {
    this.#tracks = stream.getAudioTracks();
  }

  hear(event) {
    if (event.type === "output_audio_buffer.cleared") {
      this.#play(false);
      this.#timer = setTimeout(() => this.#play(true), EMPTIED_MS);
    }
    if (event.type === "output_audio_buffer.started") this.#play(true);
  }

  #play(enabled) {
    clearTimeout(this.#timer);
    for (const track of this.#tracks) track.enabled = enabled;
  }
}
