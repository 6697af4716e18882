"""Speech to test with: human recordings from Debian's pocketsphinx-testdata, and questions read by espeak-ng."""

import io
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

RATE = 24_000
FOLDER = Path("/usr/share/pocketsphinx/test/data")

Samples = NDArray[np.float32]


class Utterance(msgspec.Struct, frozen=True):
    """Mono float32 samples at 24 kHz that begin and end with speech: the end of `samples` is the end of speech."""

    name: str
    samples: Samples
    text: str

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE

    def pcm(self) -> bytes:
        return to_pcm(self.samples)


def to_pcm(samples: Samples) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def silence(seconds: float) -> Samples:
    """A very quiet room: digital silence would flatter the detector."""
    noise = np.random.default_rng(7).standard_normal(int(seconds * RATE))
    return (noise * 3e-4).astype(np.float32)


def noise(seconds: float, loudness: float) -> Samples:
    """White noise with this root mean square."""
    return (np.random.default_rng(11).standard_normal(int(seconds * RATE)) * loudness).astype(np.float32)


def repeat(utterance: "Utterance", seconds: float) -> Samples:
    """The same utterance again and again, 0.3 s apart, for this long."""
    once = np.concatenate([utterance.samples, silence(0.3)])
    return np.tile(once, int(seconds * RATE / len(once)) + 1)[: int(seconds * RATE)]


def wav(samples: Samples) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()


def trim(samples: Samples, rate: int = RATE) -> Samples:
    """Cut what is quieter than 1/20 of the loudest 20 ms at both ends: the rooms of the recordings lie near 1/40. Lips that part
    a quarter of a second before the voice do not begin it: most of its first 100 ms is twice as loud."""
    frame = rate // 50
    energy = frame_energy(samples, frame)
    loud = energy > energy.max() / 20
    voice = np.pad(energy > energy.max() / 10, (0, 4))
    begun = np.lib.stride_tricks.sliding_window_view(voice, 5).sum(axis=1) >= 3
    first, last = np.flatnonzero(loud & begun)[0], np.flatnonzero(loud)[-1]
    return samples[first * frame : (last + 1) * frame]


def frame_energy(samples: Samples, frame: int) -> NDArray[np.float32]:
    """Root mean square of each whole frame."""
    frames = samples[: len(samples) // frame * frame].reshape(-1, frame)
    return np.sqrt((frames**2).mean(axis=1))


def resample(samples: Samples, rate: int, target: int) -> Samples:
    return soxr.resample(samples, rate, target).astype(np.float32)


def read_file(source: Path | io.BytesIO) -> tuple[Samples, int]:
    """First channel, and the sample rate."""
    samples, rate = soundfile.read(source, dtype="float32", always_2d=True)
    return np.asarray(samples, dtype=np.float32)[:, 0], rate


def read_raw(path: Path) -> tuple[Samples, int]:
    """PCM16 little endian, mono, 16 kHz."""
    return np.frombuffer(path.read_bytes(), "<i2").astype(np.float32) / np.float32(32768), 16_000


def load(path: Path, name: str, text: str) -> Utterance:
    samples, rate = read_raw(path) if path.suffix == ".raw" else read_file(path)
    return Utterance(name, trim(resample(samples, rate, RATE)), text)


def read_sentences() -> list[Utterance]:
    """Five sentences of a novel, read by a human; each has an exact transcript."""
    utterances: list[Utterance] = []
    for line in (FOLDER / "librivox/transcription").read_text().splitlines():
        text, _, name = line.replace("<s>", "").replace("</s>", "").strip().rpartition(" ")
        name = name.strip("()")
        utterances.append(load(FOLDER / f"librivox/{name}.wav", name[-4:], text.strip()))
    return utterances


def spoken_commands() -> list[Utterance]:
    """Card names and orders, spoken by humans."""
    utterances: list[Utterance] = []
    for line in (FOLDER / "cards/cards.transcription").read_text().splitlines():
        text, _, name = line.replace("<s>", "").replace("</s>", "").strip().rpartition(" ")
        name = name.strip("()")
        utterances.append(load(FOLDER / f"cards/{name}.wav", f"card-{name}", " ".join(text.split())))
    utterances.append(load(FOLDER / "goforward.raw", "goforward", "go forward ten meters"))
    utterances.append(load(FOLDER / "numbers.raw", "numbers", ""))
    utterances.append(load(FOLDER / "something.raw", "something", ""))
    utterances.append(load(FOLDER / "tidigits/dhd.2934z.raw", "digits", "two nine three four zero"))
    return utterances


QUESTIONS = (
    "What is the capital of France?",
    "How do I boil an egg?",
    "Can you tell me a short story about the sea?",
    "Why is the sky blue?",
    "Who wrote the play Hamlet?",
    "What should I cook for dinner tonight?",
    "How many days are there in a year?",
    "Could you explain how rain is made?",
    "What is your favourite colour?",
    "Where do penguins live?",
    "How far away is the moon?",
    "What is the best way to learn the piano?",
    "Tell me something about the city of Rome.",
    "Why do cats like to sleep so much?",
    "Which animals can see in the dark?",
    "I have a headache, what could help me?",
    "Please give me three ideas for a birthday present.",
    "What does a gardener do in the winter?",
    "How does a bicycle stay upright?",
    "What is the difference between a lake and a river?",
    "When did people first travel to the moon?",
    "Who invented the telephone?",
    "Is it safe to eat an apple every day?",
    "What language do people speak in Brazil?",
    "How long does it take to walk five kilometres?",
    "Do you know a good book about space?",
    "What makes a good friend?",
    "How do birds find their way home?",
    "Where does chocolate come from?",
    "Can you help me plan a trip to the mountains?",
)


def read_by_espeak(text: str, voice: str = "en-us", words_per_minute: int = 155) -> Utterance:
    """A question read by espeak-ng: a second, plainly synthetic speaker."""
    wav = subprocess.run(
        ["espeak-ng", "-v", voice, "-s", str(words_per_minute), "--stdout", text], check=True, capture_output=True, timeout=20
    ).stdout
    samples = np.frombuffer(wav[44:], "<i2").astype(np.float32) / np.float32(32768)
    return Utterance(f"espeak: {text}", trim(resample(samples, 22_050, RATE)), text)


def beginning(utterance: Utterance, seconds: float) -> Utterance:
    """Cut off after this long."""
    return Utterance(utterance.name, trim(utterance.samples[: int(seconds * RATE)]), utterance.text)


def with_inner_pause(utterance: Utterance, pause_ms: int, at: float) -> Utterance:
    """The same utterance with a pause of `pause_ms` put into the quietest place near the fraction `at` of its length."""
    frame = RATE // 100
    energy = np.convolve(frame_energy(utterance.samples, frame), np.ones(5) / 5, mode="same")
    centre, reach = int(at * len(energy)), max(len(energy) // 6, 1)
    low = max(centre - reach, 1)
    cut = (low + int(energy[low : centre + reach].argmin())) * frame
    joined = np.concatenate([utterance.samples[:cut], silence(pause_ms / 1000), utterance.samples[cut:]])
    return Utterance(f"{utterance.name} +{pause_ms} ms at {at:.2f}", joined, utterance.text)
