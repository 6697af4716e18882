"""The agent's own voice in the microphone, as a session hears it."""

import numpy as np
import pytest

from fakes.graph import silence, tone
from fakes.playout import FakePlayout
from fakes.talkative import Floor, answering, scripted
from fakes.voice_client import VoiceClient, config, settle, talking
from sessions.voice.commands import AppendAudio, ClearAudio
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.playout import SILENT_DB, Playout, Spawn

PACKET_BYTES = 960
LEVEL_SLOTS = 100
LAG_SLOTS = 5
TONE_DB = -15.3
SYLLABLE_SLOTS = 3
QUIET_ROOM_DB = -65.0
FAINT_DB = -28.0
"""−34 to −50 dBFS come back of the agent: the fake voice activity takes none of it for speech."""


class Call:
    """The agent is played at −6 to −22 dBFS, after `quiet_slots`; the microphone hears what it is given."""

    def __init__(self, client: VoiceClient, playout: FakePlayout, seed: int, quiet_slots: int = 0) -> None:
        self._client = client
        self._playout = playout
        self.played = np.repeat(np.random.default_rng(seed).uniform(-22, -6, 300), SYLLABLE_SLOTS)
        if quiet_slots:
            self.played[: LEVEL_SLOTS + quiet_slots] = SILENT_DB
        self.slot = 0

    async def hear(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), PACKET_BYTES):
            self.slot += 1
            self._playout.played_levels = self.played[self.slot : self.slot + LEVEL_SLOTS].tolist()
            await self._client.send(AppendAudio(pcm[start : start + PACKET_BYTES]))
            await settle()

    async def hear_echo(self, slots: int, gain_db: float) -> None:
        for _ in range(slots):
            await self.hear(at([self.played[self.slot + LEVEL_SLOTS - LAG_SLOTS] + gain_db]))


def at(levels: list[float]) -> bytes:
    """A tone at these levels, in dBFS, 20 ms each."""
    factors = np.repeat(10 ** ((np.array(levels) - TONE_DB) / 20), PACKET_BYTES // 2)
    return (np.frombuffer(tone(20 * len(levels)), "<i2") * factors).astype("<i2").tobytes()


def voice(seed: int) -> bytes:
    """600 ms."""
    return at(np.repeat(np.random.default_rng(seed + 100).uniform(-29, -22, 10), SYLLABLE_SLOTS).tolist())


async def leave_and_come_back(client: VoiceClient) -> None:
    def plays_on(before: Playout | None, spawn: Spawn) -> Playout:
        assert before is not None
        return before

    client.session.detach()
    await settle()
    client.session.attach(8, plays_on)
    await settle()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", ["cleared", "handed over"])
async def test_who_speaks_right_after_the_microphone_began_anew_is_heard(how: str, seed: int) -> None:
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, seed)
        await call.hear(silence(2_000))
        if how == "cleared":
            await client.send(ClearAudio())
        else:
            await leave_and_come_back(client)
        playout.told = []
        await call.hear(voice(seed))
        assert playout.told[-1] == "hold"


async def test_the_way_of_an_echo_is_not_remembered_in_another_call() -> None:
    """The first call was loud, the second is not fed back at all."""
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, 3, quiet_slots=50)
        await call.hear(silence(1_000))
        await call.hear_echo(60, -12.0)
        assert playout.told.count("hold") <= 1
        assert playout.told[-1:] in ([], ["resume"])
        await leave_and_come_back(client)
        await call.hear(silence(1_000))
        playout.told = []
        await call.hear(voice(3))
        assert playout.told[-1:] == ["hold"]


@pytest.mark.parametrize("after_ms", range(120, 540, 60))
async def test_who_speaks_right_after_an_agent_that_is_not_fed_back_is_heard_at_once(after_ms: int) -> None:
    """Both rise at about the same time, which is all that can be compared; the silent microphone before tells them apart."""
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, 1)
        await call.hear(at([QUIET_ROOM_DB] * 100))
        begins = call.slot + LEVEL_SLOTS
        call.played[begins : begins + 100] = SILENT_DB
        call.played[begins + 100 :] = -15.0
        await call.hear(at([QUIET_ROOM_DB] * (100 + after_ms // 20)))
        playout.told = []
        await call.hear(at([-27.0] * 6))
        assert playout.told == ["hold"]


async def test_a_muted_microphone_tells_nothing_about_the_agents_echo() -> None:
    """Its user goes on by loudspeaker: what rises with the agent may be its echo, as in a call that has just begun."""
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, 1)
        await call.hear(silence(2_000))
        begins = call.slot + LEVEL_SLOTS
        call.played[begins : begins + 100] = SILENT_DB
        call.played[begins + 100 :] = -15.0
        await call.hear(silence(2_000 + 200))
        playout.told = []
        await call.hear(at([-27.0] * 6))
        assert playout.told[-1:] in ([], ["resume"])


async def test_an_echo_too_faint_for_a_voice_does_not_hold_the_agent_by_its_loudness() -> None:
    """It is as loud as an "s". The agent pauses for two seconds, so that its next word rises out of a quiet room."""
    playout = Floor()
    async with talking(scripted("Stop."), voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, 3, quiet_slots=50)
        call.played[LEVEL_SLOTS + 110 : LEVEL_SLOTS + 210] = SILENT_DB
        await call.hear(silence(1_000))
        await call.hear_echo(60, FAINT_DB)
        playout.told = []
        await call.hear(silence(2_000))
        await call.hear_echo(60, FAINT_DB)
        assert playout.told == []
        call.played[call.slot + LEVEL_SLOTS :] = SILENT_DB
        await call.hear(silence(1_000) + at([-35.0] * 6))
        assert playout.told == ["hold"]


async def test_enough_of_the_microphone_is_kept_to_find_an_echo() -> None:
    """Also where turns have no padding."""
    playout = Floor()
    detection = ServerVad(prefix_padding_ms=0)
    async with talking(scripted("Stop."), voice_config=config(detection), playout=playout) as client:
        await answering(client, 100)
        call = Call(client, playout, 4, quiet_slots=50)
        await call.hear(silence(1_000))
        await call.hear_echo(120, -12.0)
        assert playout.told.count("hold") <= 1
        assert playout.told[-1:] in ([], ["resume"])
