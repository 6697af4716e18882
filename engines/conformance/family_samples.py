"""Samples for the families of engines/models/registry.py, made from nothing but espeak-ng: no recordings, no other model."""

import subprocess
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engines.conformance.samples import GenerationSamples, TextSamples
from engines.parameters import Activity, EndOfTurn, Generation, Message, Recognition, Speech
from engines.payloads import Array, Payload, Scalar, audio
from engines.phonemes import find_espeak
from engines.resampling import to_pcm

CHUNKS = (4_801, 1, 12_000, 2_400)
"""Samples of each input."""
RATES = (24_000, 16_000, 48_000)
WRONG_SOUNDS = (
    Payload(text="no sound"),
    Payload(arrays={"pcm": Array.of(np.zeros(480, np.float32))}, attributes={"rate": 24_000}),
    Payload(arrays={"pcm": Array.of(np.zeros((2, 480), np.int16))}, attributes={"rate": 24_000}),
    audio(bytes(960), 0),
    audio(bytes(960), 1_000_000),
)
PIPER_CHANNELS = 192
ESPEAK_TIMEOUT_S = 10.0
ESPEAK_RATE = 22_050
WAVE_HEADER_BYTES = 44


def activity(options: Mapping[str, object]) -> GenerationSamples:
    """A batched matrix product may round its sums otherwise."""
    return GenerationSamples(parameters=Activity(with_audio=True), sequences=_sounds(), wrong=WRONG_SOUNDS, tolerance=1e-6)


def end_of_turn(options: Mapping[str, object]) -> GenerationSamples:
    return GenerationSamples(parameters=EndOfTurn(), sequences=_sounds(), wrong=WRONG_SOUNDS, tolerance=1e-4)


def recognition(options: Mapping[str, object]) -> GenerationSamples:
    """Read by espeak-ng. Raises EspeakMissing."""
    said = (("Good morning, my friend.", "What time is it now?", ""), ("The weather is fine today.", "Thank you very much."))
    sequences = tuple(tuple(_utterance(text, place) for place, text in enumerate(texts)) for texts in said)
    return GenerationSamples(
        parameters=Recognition(), sequences=sequences, wrong=WRONG_SOUNDS, refused=(Recognition(language="klingon"),)
    )


def piper_clauses(options: Mapping[str, object]) -> GenerationSamples:
    speech = Speech(voice=str(options.get("voice", "joe")))
    return _clauses(speech, reseeded=Speech(voice=speech.voice, seed=7))


def kokoro_clauses(options: Mapping[str, object]) -> GenerationSamples:
    return _clauses(Speech(voice="af_heart", rate=16_000), reseeded=None)


def piper_frames(options: Mapping[str, object]) -> GenerationSamples:
    """Windows of latent frames, without meaning and without silence."""
    sequences = tuple(tuple(_window(seed, place) for place in range(4)) for seed in range(2))
    wrong = (Payload(), Payload(arrays={"frames": Array.of(np.zeros((3, 40), np.float32))}))
    return GenerationSamples(parameters=Speech(voice="joe"), sequences=sequences, wrong=wrong)


def conversations(options: Mapping[str, object]) -> TextSamples:
    asked = ("What is the capital of France?", "Name three colours.", "How are you today?")
    return TextSamples(
        conversations=tuple((Message("user", question),) for question in asked),
        wrong=(Message("user", "word " * 100_000),),
        parameters=Generation(max_tokens=8),
        drawing=Generation(max_tokens=8, temperature=1.5),
    )


def _sounds() -> tuple[tuple[Payload, ...], ...]:
    return tuple(_chunked(voiced(sum(CHUNKS), rate, seed), rate) for seed, rate in enumerate(RATES))


def _utterance(text: str, place: int) -> Payload:
    command = [find_espeak(), "-v", "en-us", "--stdout", text]
    wave = subprocess.run(command, check=True, capture_output=True, timeout=ESPEAK_TIMEOUT_S).stdout
    sound = audio(wave[WAVE_HEADER_BYTES:], ESPEAK_RATE)
    return Payload(arrays=sound.arrays, attributes={**sound.attributes, "start_s": float(place)})


def _chunked(pcm: NDArray[np.int16], rate: int) -> tuple[Payload, ...]:
    return tuple(audio(part.tobytes(), rate) for part in np.split(pcm, np.cumsum(CHUNKS)[:-1]))


def voiced(samples: int, rate: int, seed: int) -> NDArray[np.int16]:
    """Something between a hum and a voice: gliding harmonics in syllables, over a little noise."""
    draw = np.random.default_rng(seed)
    seconds = np.arange(samples) / rate
    pitch = 110 + 20 * seed + 15 * np.sin(2 * np.pi * 1.3 * seconds)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    harmonics = sum(np.sin(number * phase) / number for number in range(1, 12))
    syllables = np.clip(np.sin(2 * np.pi * 4 * seconds), 0, None)
    return to_pcm((0.2 * syllables * harmonics + 0.003 * draw.standard_normal(samples)).astype(np.float32))


def _clauses(speech: Speech, reseeded: Speech | None) -> GenerationSamples:
    spoken = (("Yes.", "I can, ", "😀", "truly."), ("No, ", "never!"), ("Well: ", "perhaps."))
    sequences = tuple(tuple(_clause(text, place) for place, text in enumerate(texts)) for texts in spoken)
    nobody = Speech(voice="nobody at all")
    return GenerationSamples(
        parameters=speech, sequences=sequences, wrong=(Payload(text="word " * 5_000),), refused=(nobody,), reseeded=reseeded
    )


def _clause(text: str, place: int) -> Payload:
    return Payload(text=text, attributes={"clause": place, "written_end": len(text)})


def _window(seed: int, place: int) -> Payload:
    frames = np.random.default_rng((seed, place)).standard_normal((PIPER_CHANNELS, 30), np.float32)
    ended = place % 2 == 1
    context: dict[str, Scalar] = {"left": 6, "right": 0 if ended else 6}
    attributes = {**context, "clause": place // 2, "clause_final": ended, "pause_ms": 80}
    return Payload(arrays={"frames": Array.of(frames)}, attributes=attributes)
