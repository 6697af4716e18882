"""What a bad network costs a caller: packets with send times, a simulated network, the microphone and a real media worker, and
the recogniser. Beside it stock aiortc's jitter buffer on the same packets.

`await hearing_through_loss(short=…)` gives, as `tests/run bench media` prints it:

`delay_recovery_ms`: from a packet that is lost until sound comes with no more delay than before; `delay_added_ms`: how much of it
stays. `discarded_in_time`: packets that arrived in time and were not heard, at 1 % random loss. `wer_5pct`: word error rate of
known sentences at 5 % loss; `wer_clean`: without. `burst_recovery_ms`: from the first packet after 30 that were lost.
"""

import asyncio
import contextlib
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jiwer
import msgspec
from aiortc.jitterbuffer import JitterBuffer as StockBuffer
from aiortc.rtp import RtpPacket

from engines.models.whisper import Whisper
from engines.parameters import Recognition
from engines.payloads import audio
from engines.weights import directory
from fakes.lossy_network import SLOT_S, Arrival, random_loss, stream, without
from realtime.media.client import MediaClient
from realtime.media.opus import OpusDecoder
from realtime.media.opus_stream import OpusSpeaker
from realtime.webrtc.microphone import Microphone
from recordings import RATE, Utterance, read_sentences

FRAME_SAMPLES = RATE * 20 // 1000
BACK_WITHIN_S = 0.02
"""Of the delay before counts as back: one packet."""
LOST_AT = 100
BURST_PACKETS = 30
STOCK_CAPACITY, STOCK_PREFETCH = 16, 4
"""Those of aiortc's receiver for sound."""


class Heard(msgspec.Struct):
    """What the session got. `came`: for each piece when it came, in seconds since the first packet was sent, and where it ends in
    the stream, in samples."""

    pcm: bytes
    came: list[tuple[float, int]]
    discarded: int

    def delay_s(self) -> list[tuple[float, float]]:
        """When, and how long after its sound each piece came."""
        return [(at_s, at_s - end / RATE) for at_s, end in self.came]


async def hearing_through_loss(*, short: bool) -> dict[str, Any]:
    sentences = read_sentences()[: 1 if short else 5]
    packets = [list(OpusSpeaker().speak(sentence.pcm())) for sentence in sentences]
    runs = 2 if short else 8
    async with MediaClient() as media:
        async with media.speak():  # until the worker is there
            pass
        begun = packets[0][: LOST_AT + 100]
        single = await asyncio.gather(*(_through(media, begun, lambda place: place == LOST_AT) for _ in range(runs)))
        bursts = await asyncio.gather(*(_through(media, begun, _burst) for _ in range(runs)))
        sparse, clean, lossy = await asyncio.gather(*(_all_through(media, packets, share) for share in (0.01, 0.0, 0.05)))
    recogniser = Whisper.load(directory("whisper-tiny-en"), {})
    before_s = LOST_AT * SLOT_S
    return {
        "delay_recovery_ms": _worst_ms(_recovery_s(one, before_s) for one in single),
        "delay_added_ms": _ms(statistics.median(_added_s(one.delay_s(), before_s) for one in single)),
        "discarded_in_time": sum(one.discarded for one in sparse),
        "wer_clean": _wer(recogniser, sentences, [one.pcm for one in clean]),
        "wer_5pct": _wer(recogniser, sentences, [one.pcm for one in lossy]),
        "burst_recovery_ms": _worst_ms(_recovery_s(one, before_s, BURST_PACKETS * SLOT_S) for one in bursts),
        "aiortc": _stock(recogniser, sentences, packets),
    }


def _burst(place: int) -> bool:
    return LOST_AT <= place < LOST_AT + BURST_PACKETS


async def _all_through(media: MediaClient, voices: Sequence[list[bytes]], share: float) -> list[Heard]:
    through = [_through(media, packets, random_loss(share, seed)) for seed, packets in enumerate(voices)]
    return list(await asyncio.gather(*through))


async def _through(media: MediaClient, packets: list[bytes], lost: Callable[[int], bool]) -> Heard:
    """In real time, to the last packet."""
    microphone, loop = Microphone(media), asyncio.get_running_loop()
    arrivals, length = without(stream(packets, began_s=0.0), lost), len(packets) * FRAME_SAMPLES
    began_s, heard, complete = loop.time(), Heard(b"", [], 0), asyncio.Event()

    async def hear(pcm: bytes) -> None:
        heard.pcm += pcm
        heard.came.append((loop.time() - began_s, len(heard.pcm) // 2))
        if len(heard.pcm) >= 2 * length:
            complete.set()

    for at_s, packet in arrivals:
        loop.call_at(began_s + at_s, microphone.arrived, packet)
    hearing = asyncio.create_task(microphone.run(hear))
    await complete.wait()
    hearing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await hearing
    counts = microphone.statistics()
    filled = round((counts.recovered_s + counts.concealed_s + counts.silent_s) * RATE)
    heard.discarded = counts.received - (len(heard.pcm) // 2 - filled) // FRAME_SAMPLES
    return heard


def _recovery_s(heard: Heard, lost_s: float, lasted_s: float = 0.0) -> float:
    """From the end of the loss until half of what comes in the next 200 ms comes no later than usual: single pieces may be late
    on a busy machine."""
    delays = heard.delay_s()
    usual_s = statistics.median(delay_s for at_s, delay_s in delays if at_s < lost_s)
    again_s = lost_s + lasted_s
    for at_s, _ in delays:
        soon = [delay_s for later_s, delay_s in delays if at_s <= later_s < at_s + 0.2]
        if at_s >= again_s and statistics.median(soon) <= usual_s + BACK_WITHIN_S:
            return at_s - again_s
    return math.inf


def _added_s(delays: Sequence[tuple[float, float]], lost_s: float) -> float:
    before = [delay_s for at_s, delay_s in delays if at_s < lost_s]
    after = [delay_s for at_s, delay_s in delays if at_s > lost_s + 1]
    return statistics.median(after) - statistics.median(before)


def _worst_ms(seconds: Iterable[float]) -> float:
    return _ms(max(seconds))


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _wer(recogniser: Whisper, sentences: Sequence[Utterance], sounds: Sequence[bytes]) -> float:
    texts = list[str]()
    for pcm in sounds:
        (produced,) = recogniser.run([(recogniser.open(Recognition()), audio(pcm, RATE))])
        texts.append(produced[0].payload.text if isinstance(produced, list) else "")
    return round(jiwer.wer([_plain(sentence.text) for sentence in sentences], [_plain(text) for text in texts]), 3)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z']+", text.lower().replace("mr.", "mister")))


def _stock(recogniser: Whisper, sentences: Sequence[Utterance], voices: Sequence[list[bytes]]) -> dict[str, Any]:
    """aiortc gives a frame when enough later ones have come, and decodes what it has as if nothing were missing."""
    single = _stock_given(without(stream(voices[0], began_s=0.0), lambda place: place == LOST_AT))
    delays = [(at_s, at_s - int.from_bytes(data[:4]) * SLOT_S) for at_s, data in single]
    sparse = [without(stream(packets), random_loss(0.01, seed)) for seed, packets in enumerate(voices)]
    lossy = [without(stream(packets), random_loss(0.05, seed)) for seed, packets in enumerate(voices)]
    return {
        "delay_added_ms": _ms(_added_s(delays, LOST_AT * SLOT_S)),
        "discarded_in_time": sum(len(arrivals) - STOCK_CAPACITY - len(_stock_given(arrivals)) for arrivals in sparse),
        "wer_5pct": _wer(recogniser, sentences, [_stock_decoded(arrivals) for arrivals in lossy]),
    }


def _stock_given(arrivals: Sequence[Arrival]) -> list[tuple[float, bytes]]:
    """When, and a frame with the number of its packet before it."""
    buffer, given = StockBuffer(STOCK_CAPACITY, STOCK_PREFETCH), list[tuple[float, bytes]]()
    first = arrivals[0].packet
    for at_s, audio_packet in arrivals:
        packet = RtpPacket(sequence_number=audio_packet.sequence, timestamp=audio_packet.timestamp)
        number = audio_packet.sequence - first.sequence
        packet._data = number.to_bytes(4) + audio_packet.payload  # pyright: ignore[reportAttributeAccessIssue]  what its depacketisers set
        _, frame = buffer.add(packet)
        if frame is not None:
            given.append((at_s, frame.data))
    return given


def _stock_decoded(arrivals: Sequence[Arrival]) -> bytes:
    decoder = OpusDecoder()
    return b"".join(decoder.decode(data[4:]) for _, data in _stock_given(arrivals))
