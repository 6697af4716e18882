"""Questions to calibrate with: read by the server's own voice, some with a pause inside."""

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray

from realtime.calibration.probe import ProbeFailed

RATE_HZ = 24_000
BYTES_PER_S = RATE_HZ * 2
FRAME = RATE_HZ // 100
VOICED_RMS = 0.01
"""Of 10 ms: louder than a room."""
QUESTIONS = (
    "What is the capital of France?",
    "Why is the sky blue, and why is it red in the evening?",
    "How many days are there in a year?",
    "Could you tell me how rain is made?",
    "Where do penguins live, and what do they eat?",
    "What is the best way to learn the piano?",
    "Who was the first person on the moon?",
    "How do I boil an egg so that it stays soft?",
)
PAUSES_MS = (0, 300, 0, 500, 0, 700, 0, 200)
"""Inside the question of the same place: half of all have one."""

Samples = NDArray[np.float32]


class Utterance(msgspec.Struct, frozen=True):
    """PCM16 mono at 24 kHz that begins and ends with speech."""

    pcm: bytes

    @property
    def seconds(self) -> float:
        return len(self.pcm) / BYTES_PER_S


async def questions(url: str, model: str, voice: str) -> tuple[Utterance, ...]:
    """Raises ProbeFailed."""
    async with aiohttp.ClientSession() as http:
        return tuple(
            [
                with_pause(await _spoken(http, url, text, model, voice), pause_ms)
                for text, pause_ms in zip(QUESTIONS, PAUSES_MS, strict=True)
            ]
        )


def with_pause(pcm: bytes, pause_ms: int) -> Utterance:
    """Trimmed to what is voiced; the pause is put into the quietest place of its middle third."""
    samples = _samples(pcm)
    voiced = np.flatnonzero(loudness(samples) > VOICED_RMS)
    if not len(voiced):
        raise ProbeFailed("the server's own voice cannot be heard: calibration needs one that speaks")
    samples = samples[voiced[0] * FRAME : (voiced[-1] + 1) * FRAME]
    if pause_ms:
        third = len(samples) // 3 // FRAME
        quietest = third + int(np.argmin(loudness(samples)[third : 2 * third]))
        samples = np.insert(samples, quietest * FRAME, np.zeros(pause_ms * RATE_HZ // 1000, np.float32))
    return Utterance((samples * 32_767).astype("<i2").tobytes())


def is_voiced(pcm: bytes) -> bool:
    return bool((loudness(_samples(pcm)) > VOICED_RMS).any())


def loudness(samples: Samples) -> Samples:
    """Root mean square of each whole frame of 10 ms."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    return np.sqrt(np.square(frames).mean(axis=1))


def _samples(pcm: bytes) -> Samples:
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32_768)


async def _spoken(http: aiohttp.ClientSession, url: str, text: str, model: str, voice: str) -> bytes:
    body = {"model": model, "voice": voice, "input": text, "response_format": "pcm"}
    async with http.post(f"{url}/v1/audio/speech", json=body) as answer:
        if answer.status != 200:
            raise ProbeFailed(f"the server does not speak: {await answer.text()}")
        return await answer.read()
