"""Answers cut off on the wire: how soon they fall silent, and whether anything of them is heard later.

The server's every answer is a tone of its own pitch (fakes/fast_voice.py).
"""

import asyncio
import random
from collections.abc import Sequence

import msgspec
import numpy as np

from bench import wire
from bench.page_talk import LONG_ANSWER
from bench.playback import is_voiced
from bench.server import Server
from browser import microphone
from browser.microphone import Script
from fakes.fast_voice import pitch_of
from fakes.rtc_client import SILENCE
from realtime.media.opus import OpusDecoder
from recordings import RATE, Utterance

LEAST_PLAYED_S, MOST_PLAYED_S = 1.2, 2.6
"""After the end of an utterance: the answer begins about half a second after it."""
SAME_HZ = 12.0
"""Pitches are 30 Hz apart."""
AROUND_S = 30.0
"""To connect in, and to hang up."""
NEAR_S = 6.0
"""Pitches are used again, but not so soon."""
FFT_SIZE = 8192
PACKET_SAMPLES = RATE // 50


class CutOff(msgspec.Struct, frozen=True):
    """`taken_ms`: first packet of each interruption sent → last packet of the interrupted answer received. `stale_samples`: at
    24 kHz, of answers of which `output_audio_buffer.cleared` had come before, over the same socket."""

    taken_ms: list[float]
    stale_samples: int


class Tone(msgspec.Struct, frozen=True):
    """A voiced packet."""

    at: float
    hertz: float


async def cut_off(server: Server, asked: Sequence[Utterance], calls: int, seed: int = 5) -> CutOff:
    """Each of the calls, side by side: every utterance interrupts the answer to the one before it, at a random moment."""
    draw = random.Random(seed)
    scripts = [
        microphone.script(((one, draw.uniform(LEAST_PLAYED_S, MOST_PLAYED_S)) for one in asked[first::calls]), wire.LEAD_IN_S)
        for first in range(calls)
    ]
    spoken = [(script, wire.opus(script)) for script in scripts]

    async def speak(script: Script, packets: Sequence[bytes]) -> wire.Line:
        async with asyncio.timeout(script.seconds + AROUND_S), wire.calling(server, LONG_ANSWER) as phone:
            return await phone.speak(packets)

    lines = await asyncio.gather(*(speak(script, packets) for script, packets in spoken))
    judgements = [  # not before all are over: it takes seconds, in which no packet would leave
        judged(line, [line.sent(one.begin_s) for one in script.spoken]) for line, script in zip(lines, scripts, strict=True)
    ]
    return CutOff([ms for one in judgements for ms in one.taken_ms], sum(one.stale_samples for one in judgements))


def judged(line: wire.Line, onsets: Sequence[float]) -> CutOff:
    """`onsets`: when the first packet of each utterance was sent."""
    tones, pitches = voiced_tones(line), pitches_hz(line)
    cleared = [(told.event["response_id"], told.at) for told in line.events if told.kind == "output_audio_buffer.cleared"]
    taken_ms: list[float] = []
    stale = 0
    for response, cleared_at in cleared:
        its = [tone.at for tone in tones if abs(tone.hertz - pitches[response]) < SAME_HZ and abs(tone.at - cleared_at) < NEAR_S]
        onset = max(at for at in onsets if at < cleared_at)
        if its:
            taken_ms.append(round(max(0.0, its[-1] - onset) * 1000, 1))
            stale += sum(at > cleared_at for at in its)
    return CutOff(taken_ms, stale * PACKET_SAMPLES)


def pitches_hz(line: wire.Line) -> dict[str, int]:
    """Of the answers, by what they say."""
    said: dict[str, str] = {}
    for told in line.events:
        if told.kind == "response.output_audio_transcript.delta":
            said[told.event["response_id"]] = said.get(told.event["response_id"], "") + told.event["delta"]
    return {response: pitch for response, text in said.items() if (pitch := pitch_of(text)) is not None}


def voiced_tones(line: wire.Line) -> list[Tone]:
    decoder = OpusDecoder()
    tones: list[Tone] = []
    for packet in line.received:
        pcm = decoder.decode(packet.payload)
        if packet.payload != SILENCE and is_voiced(pcm):
            tones.append(Tone(packet.arrived_s, pitch_hz(pcm)))
    return tones


def pitch_hz(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), FFT_SIZE))
    return float(np.argmax(spectrum)) * RATE / FFT_SIZE
