// What the browser has buffered of a cleared answer is not played; what comes after it is.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Hush } from "../../web/voice/hush.js";

const hushed = () => {
  const track = { enabled: true };
  const hush = new Hush();
  hush.over({ getAudioTracks: () => [track] });
  return { track, tell: (name) => hush.hear({ type: `output_audio_buffer.${name}` }) };
};

test("a cleared answer is silent at once, and the next one sounds from its beginning", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { track, tell } = hushed();
  tell("cleared");
  assert.equal(track.enabled, false);
  tell("started");
  assert.equal(track.enabled, true);
  tell("cleared");
  mock.timers.tick(399);
  assert.equal(track.enabled, false);
  mock.timers.reset();
});

test("the silence ends by itself: events may be late", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { track, tell } = hushed();
  tell("cleared");
  mock.timers.tick(400);
  assert.equal(track.enabled, true);
  tell("stopped");
  assert.equal(track.enabled, true);
  mock.timers.reset();
});
