"""Sounds that are no words, made from a seed: what a microphone hears of a body, a desk and a street."""

from collections.abc import Sequence

import numpy as np

from recordings import RATE, Samples


def at_level(samples: Samples, level_db: float) -> Samples:
    """The same sound with this root mean square, in dBFS, over its loud part."""
    frames = np.square(samples[: len(samples) // 240 * 240]).reshape(-1, 240).mean(axis=1)
    loud = frames[frames > frames.max() / 100].mean()
    return (samples * (10 ** (level_db / 20) / np.sqrt(loud))).astype(np.float32)


def pink(count: int, seed: int) -> Samples:
    """Noise that falls by 3 dB an octave, as rooms and streets do."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 20))
    return np.fft.irfft(spectrum, count).astype(np.float32)


def babble(voices: Sequence[Samples], count: int, seed: int) -> Samples:
    """A full room: sixteen voices, played backwards so that nobody says a word."""
    random = np.random.default_rng(seed)
    mixed = np.zeros(count, np.float32)
    for voice in (voices[place % len(voices)] for place in range(16)):
        backwards = np.tile(at_level(voice[::-1], -20.0), len(mixed) // len(voice) + 2)
        start = int(random.integers(len(voice)))
        mixed += backwards[start : start + len(mixed)]
    return mixed


def band(samples: Samples, low_hz: float, high_hz: float) -> Samples:
    spectrum = np.fft.rfft(samples)
    hertz = np.fft.rfftfreq(len(samples), 1 / RATE)
    return np.fft.irfft(spectrum * ((hertz > low_hz) & (hertz < high_hz)), len(samples)).astype(np.float32)


def decay(ms: float, half_ms: float, rise_ms: float = 5.0) -> Samples:
    t = np.arange(int(ms * RATE / 1000)) * 1000 / RATE
    return (np.minimum(t / rise_ms, 1) * 0.5 ** (t / half_ms)).astype(np.float32)


def cough(seed: int) -> Samples:
    """A burst of breath through an open throat, and its voiced end: 250–400 ms."""
    random = np.random.default_rng(seed)
    burst = decay(float(random.uniform(160, 260)), 50.0)
    breath = band(random.standard_normal(len(burst)).astype(np.float32), 300, 5_000) * burst
    hertz = float(random.uniform(110, 190))
    tail = decay(float(random.uniform(90, 140)), 40.0, 20.0)
    voiced = np.sign(np.sin(2 * np.pi * hertz * np.arange(len(tail)) / RATE)) * tail * 0.4
    return np.concatenate([breath, band(voiced.astype(np.float32), 100, 2_500)])


def throat(seed: int) -> Samples:
    """A throat being cleared: a rough low voice, 350 ms."""
    random = np.random.default_rng(seed)
    shape = decay(350.0, 160.0, 40.0)
    hertz = 90 + 8 * np.cumsum(random.standard_normal(len(shape))) / np.sqrt(np.arange(1, len(shape) + 1))
    voice = np.sign(np.sin(2 * np.pi * np.cumsum(hertz) / RATE)) * (0.6 + 0.4 * random.random(len(shape)))
    return band((voice * shape).astype(np.float32), 80, 3_000)


def knock(seed: int) -> Samples:
    """Knuckles on a table: two or three."""
    random = np.random.default_rng(seed)
    one = np.zeros(int(0.14 * RATE), np.float32)
    t = np.arange(len(one)) / RATE
    for hertz in (140.0, 260.0, 410.0):
        one += np.sin(2 * np.pi * hertz * float(random.uniform(0.9, 1.1)) * t) * 0.5 ** (t / 0.012)
    return np.tile(one, int(random.integers(2, 4)))


def keys(seed: int) -> Samples:
    """Half a second of typing."""
    random = np.random.default_rng(seed)
    sound = np.zeros(int(0.6 * RATE), np.float32)
    for _ in range(5):
        click = band(random.standard_normal(480).astype(np.float32), 1_500, 9_000) * decay(20.0, 3.0, 0.5)
        start = int(random.integers(len(sound) - len(click)))
        sound[start : start + len(click)] += click
    return sound


def breath(seed: int) -> Samples:
    """Somebody breathes into the microphone: 700 ms."""
    shape = np.sin(np.linspace(0, np.pi, int(0.7 * RATE))) ** 2
    air = np.random.default_rng(seed).standard_normal(len(shape)).astype(np.float32)
    return (band(air, 200, 4_000) * shape).astype(np.float32)


def hum(seed: int) -> Samples:
    """Mm-hm, with closed lips: a low voice that rises, 350–500 ms."""
    random = np.random.default_rng(seed)
    first, second = int(random.uniform(0.13, 0.2) * RATE), int(random.uniform(0.18, 0.26) * RATE)
    gap, base = int(0.05 * RATE), float(random.uniform(100, 190))
    pitch = np.concatenate([np.full(first, base), np.full(gap, base), np.linspace(base * 1.15, base * 1.4, second)])
    level = np.concatenate([np.hanning(first), np.zeros(gap), np.hanning(second)])
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = sum(np.sin(n * phase) / n**1.7 for n in range(1, 9))
    breathing = band(random.standard_normal(len(pitch)).astype(np.float32), 500, 3_000) * 0.01
    return (voice * level + breathing).astype(np.float32)
