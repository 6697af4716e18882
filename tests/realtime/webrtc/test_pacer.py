"""20 ms slots on a clock of the test's own."""

from realtime.media.call_codecs import CallCodec
from realtime.media.opus_frames import OPUS_PAUSE, OPUS_SILENCE
from realtime.webrtc.pacer import Pacer
from realtime.webrtc.packets import Outgoing
from realtime.webrtc.playout import Playout


class Time:
    """Sleeps as long as it is asked to, and `oversleep_s` more."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.oversleep_s = 0.0

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.oversleep_s


async def paced(packets: int = 0, codec: CallCodec = "opus", sparing: bool = False) -> tuple[Pacer, Time, list[float]]:
    time, skipped = Time(), list[float]()
    playout = Playout(lambda name: None, lambda name: None, lambda: None)
    playout.begin("a", "item")
    for number in range(packets):
        await playout.put("a", bytes([number]))
    return Pacer(playout, skipped.append, time.clock, time.sleep, codec=codec, sparing=sparing), time, skipped


async def test_one_packet_every_20_ms_without_drift() -> None:
    pacer, time, skipped = await paced(packets=3)
    sent = [(await pacer.next(), round(time.now_s - 100, 3)) for _ in range(5)]
    assert [(packet.timestamp, at) for packet, at in sent] == [(960 * n, round(0.02 * n, 3)) for n in range(5)]
    assert [packet.payload for packet, _ in sent] == [b"\x00", b"\x01", b"\x02", OPUS_SILENCE, OPUS_SILENCE]
    assert skipped == []


async def test_a_little_late_stays_on_the_grid() -> None:
    pacer, time, skipped = await paced()
    time.oversleep_s = 0.004
    at = list[float]()
    for _ in range(4):
        await pacer.next()
        at.append(round(time.now_s - 100, 3))
    assert at == [0.004, 0.024, 0.044, 0.064]
    assert skipped == []


async def test_missed_slots_are_skipped_and_no_sound_is_lost() -> None:
    pacer, time, skipped = await paced(packets=3)
    assert (await pacer.next()).timestamp == 0
    time.now_s += 0.115  # the slots at 20, 40, 60 and 80 ms pass unused; the one at 100 ms is only 15 ms late
    late = await pacer.next()
    assert (late.payload, late.timestamp) == (b"\x01", 5 * 960)
    assert skipped == [4]
    after = await pacer.next()
    assert (after.payload, after.timestamp, round(time.now_s - 100, 3)) == (b"\x02", 6 * 960, 0.12)


async def test_the_first_slot_is_when_it_is_first_asked() -> None:
    pacer, time, skipped = await paced()
    time.now_s += 30
    await pacer.next()
    assert (time.now_s, skipped) == (130.0, [])


async def test_silence_that_need_not_be_sent_is_one_packet_in_400_ms() -> None:
    pacer, time, skipped = await paced(packets=2, sparing=True)
    sent = [(await pacer.next(), round(time.now_s - 100, 3)) for _ in range(6)]
    assert [packet.payload for packet, _ in sent] == [b"\x00", b"\x01", OPUS_SILENCE, OPUS_PAUSE, OPUS_PAUSE, OPUS_PAUSE]
    assert [at for _, at in sent] == [0, 0.02, 0.04, 0.06, 0.46, 0.86]
    assert all(packet.timestamp == round(48_000 * at) for packet, at in sent)
    assert skipped == []


async def test_an_answer_ends_the_pause_in_the_next_slot() -> None:
    time = Time()
    playout = Playout(lambda name: None, lambda name: None, lambda: None)
    pacer = Pacer(playout, lambda missed: None, time.clock, time.sleep, sparing=True)
    for _ in range(2):
        await pacer.next()
    playout.begin("a", "item")
    await playout.put("a", b"sound")
    assert await pacer.next() == Outgoing(b"sound", 2 * 960)


async def test_a_telephone_has_a_clock_and_a_silence_of_its_own() -> None:
    pacer, _, _ = await paced(packets=1, codec="pcma")
    assert [await pacer.next() for _ in range(2)] == [Outgoing(b"\x00", 0), Outgoing(b"\xd5" * 160, 160)]
