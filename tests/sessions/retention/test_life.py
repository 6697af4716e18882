"""When a session ends by itself, and what its client hears of it."""

import pytest

from fakes.house import DETACHED_GRACE_S, coming, house
from fakes.timers import Timers
from fakes.voice_client import config, settle
from sessions.identity.principal import LOCAL, Principal
from sessions.retention.life import Life
from sessions.retention.settings import Retention, SessionLimits
from sessions.retention.watch import Expiry
from sessions.states import State
from sessions.store.records import Order
from sessions.voice.attached import Dismissal
from sessions.voice.commands import CancelResponse
from sessions.voice.events import Expiring, Opened

LIFE_S = 7_200


async def test_the_longest_life_is_announced_a_minute_ahead_and_then_it_is_over() -> None:
    async with house() as world, coming(world) as client:
        await client.until(Opened)
        world.timers.fire(LIFE_S - 60)
        assert (await client.until(Expiring)).ends_at > 0
        assert world.states() == [State.ACTIVE]
        world.timers.fire(LIFE_S)
        await client.attached.dismissed.wait()
        assert client.attached.why is Dismissal.EXPIRED
        await settle()
        assert world.states() == []
        assert await world.store.look(client.attached.session_id) is None


async def test_coming_back_does_not_extend_the_longest_life() -> None:
    async with house() as world:
        async with coming(world) as first:
            pass
        world.now_s += 50
        async with coming(world, first.attached.token):
            left = await world.store.look(first.attached.session_id)
            assert left is not None
            assert left.record.life_s == pytest.approx(LIFE_S - 50)  # pyright: ignore[reportUnknownMemberType]  pytest's own


async def test_a_key_may_allow_less() -> None:
    limited = Principal(tenant="local", key_id="k", scopes=LOCAL.scopes, longest_session_s=100)
    async with house() as world, world.sessions.open(config(), principal=limited) as attached:
        world.timers.fire(100)
        await attached.dismissed.wait()
        assert attached.why is Dismissal.EXPIRED


async def test_an_operator_ends_a_session_and_nothing_of_it_is_left() -> None:
    async with house() as world, coming(world) as client:
        session_id = client.attached.session_id
        world.sessions.heed(Order("close", session_id))
        await client.attached.dismissed.wait()
        await settle()
        assert await world.store.look(session_id) is None
        assert (await world.store.census()).active == 0


async def test_a_session_is_deleted_wherever_it_rests() -> None:
    async with house() as world:
        async with coming(world) as first:
            session_id = first.attached.session_id
        await world.sessions.put_down(session_id)
        assert await world.store.look(session_id) is not None
        assert await world.sessions.delete(session_id)
        assert not await world.sessions.delete(session_id)
        assert await world.store.look(session_id) is None


async def test_who_was_detached_longest_leaves_the_memory_first_and_comes_back_from_its_snapshot() -> None:
    async with house(seats=3, warm_mb=0) as world:
        async with coming(world) as first:
            await first.ask()
        await settle()
        assert world.states() == []
        async with coming(world, first.attached.token) as again:
            assert world.states() == [State.ACTIVE]
            await again.attached.handle(CancelResponse())


def test_retention_is_the_tenants_then_the_kinds_then_everybodys() -> None:
    limits = SessionLimits(
        longest_session_s=1_000,
        detached_grace_s=60,
        kinds={"voice": Retention(detached_grace_s=30, idle_limit_s=5)},
        tenants={"acme": Retention(detached_grace_s=90)},
    )
    acme, other, robot = (limits.lifetime(*who) for who in (("voice", "acme"), ("voice", "other"), ("robot", "other")))
    assert (acme.grace_s, acme.idle_s, acme.longest_s) == (90, 5, 1_000)
    assert (other.grace_s, other.idle_s) == (30, 5)
    assert (robot.grace_s, robot.idle_s) == (60, None)
    assert limits.lifetime("voice", "acme", 10).longest_s == 10
    assert limits.longest_anywhere_s == 1_000
    assert limits.lifetime("voice", "acme", 5_000).longest_s == 1_000


class Quiet:
    """A life of 100 s at most, 10 s of them in silence."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.now_s = 0.0
        self.told: list[object] = []
        lifetime = SessionLimits(longest_session_s=100, idle_limit_s=10).lifetime("voice", "local")
        self.life = Life(
            lifetime,
            lifetime.longest_s,
            5,
            lambda: self.now_s,
            self.timers.call_later,
            warn=self.told.append,
            unattended=lambda: self.told.append("unattended"),
            over=self.told.append,
        )

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.timers.fire(10)


def test_silence_ends_it_and_a_word_extends_it() -> None:
    quiet = Quiet()
    quiet.life.attached()
    quiet.wait(9)
    quiet.life.heard()
    quiet.wait(9)
    assert quiet.told == []
    quiet.wait(1)
    assert quiet.told == [Expiry.IDLE]


def test_nobody_is_waited_for_in_silence() -> None:
    quiet = Quiet()
    quiet.life.attached()
    quiet.life.detached()
    quiet.wait(20)
    assert quiet.told == ["unattended"]
    quiet.timers.fire(DETACHED_GRACE_S)
    assert quiet.told == ["unattended", 60, Expiry.DETACHED] or quiet.told == ["unattended", Expiry.DETACHED, 60]


def test_at_the_end_every_timer_is_off() -> None:
    quiet = Quiet()
    quiet.life.attached()
    quiet.life.detached()
    quiet.life.end()
    quiet.timers.fire()
    assert quiet.told == []
