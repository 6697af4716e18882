"""A client that is there is never given up, however little it says; one that is gone is noticed within 2.5 s."""

import asyncio
import random
from collections.abc import Callable

import pytest

from fakes.peers import open_peer
from fakes.rtc_client import SILENCE, RtcClient
from fakes.udp_relay import UdpRelay
from realtime.webrtc.dtls import SecureLink
from realtime.webrtc.liveness import ASK_AFTER_S, ASK_INTERVAL_S, LOST_AFTER_S, Liveness

MARGIN_S = 2.0
"""On a machine that is busy. How exactly it is noticed is seen where time is counted, and in `bench media`."""
HURRIED = {"ASK_AFTER_S": 0.08, "ASK_INTERVAL_S": 0.02, "LOST_AFTER_S": 2.0}


class Slept:
    """Time that passes only when it is slept through. `meanwhile` is called at the end of each sleep and says how late it is."""

    def __init__(self, meanwhile: Callable[[], float] = lambda: 0.0) -> None:
        self.now_s = 100.0
        self.times = 0
        self._meanwhile = meanwhile

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, for_s: float) -> None:
        self.times += 1
        self.now_s += for_s
        self.now_s += self._meanwhile()


class TestOne:
    async def test_that_answers_nothing_is_asked_and_lost(self) -> None:
        time = Slept()
        liveness = Liveness(time.clock, time.sleep)
        asked: list[float] = []
        await liveness.lost(lambda: asked.append(liveness.silent_s()))
        assert liveness.silent_s() == pytest.approx(LOST_AFTER_S, abs=1e-6)
        assert asked[0] == pytest.approx(ASK_AFTER_S)
        assert len(asked) == pytest.approx((LOST_AFTER_S - ASK_AFTER_S) / ASK_INTERVAL_S, abs=1.01)

    async def test_that_speaks_is_not_asked_and_costs_a_look_a_second(self) -> None:
        def meanwhile() -> float:
            liveness.sign()
            return 0.0

        time = Slept(meanwhile)
        liveness = Liveness(time.clock, time.sleep)
        await self._survives(liveness, time, 600, ask=lambda: pytest.fail("it was asked"))
        assert time.times <= 610

    async def test_that_only_answers_stays(self) -> None:
        time = Slept()
        liveness = Liveness(time.clock, time.sleep)
        await self._survives(liveness, time, 600, ask=liveness.sign)
        assert time.times <= 1210

    @pytest.mark.parametrize("seed", range(10))
    async def test_that_only_answers_stays_where_a_third_is_lost(self, seed: int) -> None:
        """Each way 30 %; an answer takes a quarter of a second."""
        chance, answers = random.Random(seed), list[float]()

        def ask() -> None:
            if chance.random() > 0.3 and chance.random() > 0.3:
                answers.append(time.now_s + 0.25)

        def meanwhile() -> float:
            if answers and answers[0] <= time.now_s:
                answers.clear()
                liveness.sign()
            return 0.0

        time = Slept(meanwhile)
        liveness = Liveness(time.clock, time.sleep)
        await self._survives(liveness, time, 120, ask)

    async def test_is_asked_before_it_is_given_up_by_a_process_that_stood_still(self) -> None:
        stalls = [5.0]

        time = Slept(lambda: stalls.pop() if stalls else 0.0)
        liveness = Liveness(time.clock, time.sleep)
        await self._survives(liveness, time, 60, ask=liveness.sign)

    async def _survives(self, liveness: Liveness, time: Slept, for_s: float, ask: Callable[[], None]) -> None:
        class Enough(Exception):
            pass

        sleep, until_s = time.sleep, time.now_s + for_s

        async def limited(slept_s: float) -> None:
            if time.now_s >= until_s:
                raise Enough
            await sleep(slept_s)

        liveness._sleep = limited  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Enough):
            await liveness.lost(ask)


async def test_a_peer_that_vanishes_is_noticed_in_time() -> None:
    await asyncio.gather(_vanish("sendrecv"), _vanish("recvonly"))


async def _vanish(direction: str) -> None:
    async with UdpRelay() as relay, open_peer() as (peer, _, _), RtcClient(relay=relay, direction=direction) as client:
        await client.connect(peer)
        await relay.passed(1)
        relay.cut()
        began_s = asyncio.get_running_loop().time()
        await peer.ended()
        assert asyncio.get_running_loop().time() - began_s < LOST_AFTER_S + MARGIN_S
        assert peer.end == "lost"


@pytest.mark.parametrize("channel", [True, False])
async def test_a_peer_that_only_listens_stays(channel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers, and is not heard otherwise but by a report each second."""
    for name, value in HURRIED.items():
        monkeypatch.setattr(f"realtime.webrtc.liveness.{name}", value)
    relay = UdpRelay()
    client = RtcClient(relay=relay, direction="recvonly", channel=channel)
    async with relay, open_peer() as (peer, _, heard), client:
        await client.connect(peer)
        await relay.passed(20)
        assert not peer.closed.is_set()
        assert peer.silent_s() < 1.0
        assert heard.packets == []


async def test_a_handshake_that_takes_longer_than_a_silence_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flights may be lost twice: OpenSSL repeats them after 1 s, and after 2 s more."""
    shake_hands = SecureLink.connect

    async def slowly(link: SecureLink) -> None:
        await shake_hands(link)
        link.liveness._signed_s -= LOST_AFTER_S  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(SecureLink, "connect", slowly)
    async with open_peer() as (peer, _, heard), RtcClient(silence=None, channel=False) as client:
        await client.connect(peer)
        client.say([SILENCE] * 3)
        await heard.until(lambda: len(heard.packets) == 3)
        assert not peer.closed.is_set()


async def test_a_peer_stays_where_a_third_is_lost() -> None:
    async with UdpRelay() as relay, open_peer() as (peer, _, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        relay.loss = 0.3
        await heard.until(lambda: len(heard.packets) > 50)
        assert not peer.closed.is_set()


async def test_a_network_that_comes_back_in_time_is_no_loss() -> None:
    async with UdpRelay() as relay, open_peer() as (peer, _, heard), RtcClient(relay=relay) as client:
        await client.connect(peer)
        relay.cut()
        asyncio.get_running_loop().call_later(1.2, relay.mend)
        await relay.passed(20)
        before = len(heard.packets)
        await heard.until(lambda: len(heard.packets) > before)
        assert not peer.closed.is_set()


class TestHowItEnded:
    async def test_the_client_says_goodbye(self) -> None:
        async with open_peer() as (peer, _, _):
            async with RtcClient() as client:
                await client.connect(peer)
            await peer.ended()
            assert peer.end == "left"

    async def test_the_client_closes_its_channel_and_falls_silent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("realtime.webrtc.liveness.LOST_AFTER_S", 0.3)
        async with UdpRelay() as relay, open_peer() as (peer, _, _), RtcClient(relay=relay) as client:
            await client.connect(peer)
            closed = asyncio.Event()
            assert client.channel is not None
            client.channel.on("close", closed.set)
            client.channel.close()
            await closed.wait()
            relay.cut()
            await peer.ended()
            assert peer.end == "left"

    async def test_this_side_closes(self) -> None:
        async with open_peer() as (peer, _, _), RtcClient() as client:
            await client.connect(peer)
            await peer.close()
            assert peer.end == "closed"
