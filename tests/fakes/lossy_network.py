"""What a network does to packets, and a jitter buffer's whole life on a clock of the test's own."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from realtime.webrtc.jitter_buffer import JitterBuffer
from realtime.webrtc.packets import AudioPacket, Lost, Silent, Sound

SLOT_S = 0.02
SLOT_TICKS = 960


class Arrival(NamedTuple):
    at_s: float
    packet: AudioPacket


class Given(NamedTuple):
    at_s: float
    sound: Sound


def stream(payloads: Iterable[bytes], sequence: int = 1_000, timestamp: int = 50_000, began_s: float = 10.0) -> list[Arrival]:
    """A packet in each slot, arriving when it is sent; b"": the slot passes unused, as in a pause."""
    sent: list[Arrival] = []
    for slot, payload in enumerate(payloads):
        if payload:
            packet = AudioPacket(sequence + len(sent) & 0xFFFF, timestamp + slot * SLOT_TICKS & 0xFFFF_FFFF, payload)
            sent.append(Arrival(began_s + slot * SLOT_S, packet))
    return sent


def without(sent: Sequence[Arrival], lost: Callable[[int], bool]) -> list[Arrival]:
    return [arrival for place, arrival in enumerate(sent) if not lost(place)]


def random_loss(share: float, seed: int) -> Callable[[int], bool]:
    draw = random.Random(seed)
    return lambda place: place > 0 and draw.random() < share


def delayed(sent: Sequence[Arrival], delay_s: Callable[[int], float]) -> list[Arrival]:
    """In the order of arrival."""
    return sorted(Arrival(arrival.at_s + delay_s(place), arrival.packet) for place, arrival in enumerate(sent))


def played(buffer: JitterBuffer, arrivals: Sequence[Arrival], until_s: float | None = None) -> list[Given]:
    """What the buffer gives, woken when it wants to be; at the end all that it holds back, or what it gives until then."""
    given: list[Given] = []
    for at_s, packet in arrivals:
        given += _woken(buffer, at_s)
        given += [Given(at_s, sound) for sound in buffer.add(packet, at_s)]
    last_s = arrivals[-1].at_s if arrivals else 0.0
    return given + _woken(buffer, last_s + 0.1 if until_s is None else until_s)


def _woken(buffer: JitterBuffer, until_s: float) -> list[Given]:
    given: list[Given] = []
    while (due_s := buffer.due_s) is not None and due_s < until_s:
        given += [Given(due_s, sound) for sound in buffer.wake(due_s)]
    return given


def payloads(given: Iterable[Given]) -> list[bytes]:
    return [one.sound for one in given if isinstance(one.sound, bytes)]


def lost(given: Iterable[Given]) -> list[int]:
    """Samples of each loss."""
    return [one.sound.samples for one in given if isinstance(one.sound, Lost)]


def silent(given: Iterable[Given]) -> list[int]:
    """Samples of each pause."""
    return [one.sound.samples for one in given if isinstance(one.sound, Silent)]


def filled(given: Sequence[Given]) -> int:
    """Samples of all losses and pauses."""
    return sum(lost(given)) + sum(silent(given))
