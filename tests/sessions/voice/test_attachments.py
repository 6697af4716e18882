"""Transports come and go; the session stays: what happens to the user's turn, to the answer, and what the next one is told."""

import asyncio

import pytest

from engines.parameters import Generation
from fakes.graph import tone
from fakes.house import ANSWER_GRACE_S, DETACHED_GRACE_S, QUESTION, coming, house
from fakes.playout import FakePlayout
from fakes.voice_client import config, settle
from sessions.admission.admission import NotAdmitted
from sessions.retention.resume_tokens import ResumeRefused
from sessions.states import State
from sessions.store.records import Fence, Missed
from sessions.voice.attached import Attached, Dismissal
from sessions.voice.commands import AppendAudio, CommandRefused, CommitAudio, Configure, CreateItem, CreateResponse
from sessions.voice.config import SemanticVad
from sessions.voice.events import (
    AudioDelta,
    Configured,
    Opened,
    Reopened,
    ResponseDone,
    SpeechStarted,
    TextDelta,
)
from sessions.voice.items import InputAudio, Item, OutputAudio, OutputText
from sessions.voice.playout import Heard


def spoken(item: Item) -> str:
    part = item.parts[0]
    assert isinstance(part, OutputAudio)
    return part.transcript


async def test_who_comes_back_gets_the_same_session_with_its_conversation_and_talks_on() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.ask()
            done = await first.until(ResponseDone)
            world.now_s += 10
        assert world.states() == [State.DETACHED]
        async with coming(world, first.attached.token) as second:
            again = await second.until(Reopened)
            assert second.seen[0] is again
            assert second.attached.session_id == first.attached.session_id
            assert [item.role for item in again.items] == ["user", "assistant"]
            assert again.items[1].id == done.response.output[0].id
            assert (again.response_id, again.config) == (None, config(SemanticVad()))
            await second.ask()
            asked = world.graph.of("thinker")[-1].parameters["thinker"]
            assert isinstance(asked, Generation)
            assert [message.role for message in asked.messages] == ["system", "user", "assistant", "user"]
            second.attached.leave()
        assert world.states() == []


async def test_nobody_listens_while_nobody_is_there() -> None:
    async with house() as world:
        async with coming(world) as first:
            assert world.graph.open_requests == 1
        assert world.graph.open_requests == 0
        async with coming(world, first.attached.token) as second:
            assert world.graph.open_requests == 1
            await second.say(960, 960)
            assert (await second.until(ResponseDone)).response.status == "completed"


async def test_what_the_user_was_saying_is_kept_and_not_answered() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.say(600)
            await first.until(SpeechStarted)
        async with coming(world, first.attached.token) as second:
            (item,) = (await second.until(Reopened)).items
            assert item.parts == (InputAudio("What is the capital of France?", 600),)
            assert await second.rest() == ["TranscriptCompleted"]
        assert world.graph.of("thinker") == []


async def test_a_sound_that_is_no_turn_yet_is_forgotten() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.say(64)
        async with coming(world, first.attached.token) as second:
            assert (await second.until(Reopened)).items == ()


async def test_a_sound_over_the_answer_that_is_no_interruption_yet_is_forgotten() -> None:
    playout = FakePlayout()
    async with house() as world:
        async with coming(world, playout=playout) as first:
            sound = await first.ask()
            playout.unfinished = (Heard(sound.response_id, sound.item_id, 700),)
            await first.say(400)
        async with coming(world, first.attached.token, playout) as second:
            assert [item.role for item in (await second.until(Reopened)).items] == ["user", "assistant"]
            assert second.attached.session.config.turn_detection is not None
            assert "SpeechStopped" not in await second.rest()


async def test_where_the_client_plays_the_answer_stops_and_the_history_holds_what_was_heard() -> None:
    async with house() as world:
        gate = world.graph.hold("audio")
        gate.step(1)
        async with coming(world) as first:
            item_id = (await first.ask()).item_id
            world.now_s += 0.7
        world.now_s += 1.0
        async with coming(world, first.attached.token) as second:
            again = await second.until(Reopened)
            assert again.items[-1].id == item_id
            (item,) = (await second.until(ResponseDone)).response.output
            assert spoken(item) == "The capital"
            assert world.graph.open_requests == 1  # it listens


async def test_where_the_server_plays_the_answer_waits_and_goes_on() -> None:
    playout = FakePlayout()
    async with house() as world:
        gate = world.graph.hold("audio")
        gate.step(1)
        async with coming(world, playout=playout) as first:
            await first.ask()
        assert playout.told.count("detach") == 1
        world.timers.fire(ANSWER_GRACE_S - 1)
        async with coming(world, first.attached.token, playout) as second:
            again = await second.until(Reopened)
            assert again.response_id is not None
            assert again.items[-1].status == "in_progress"
            assert spoken(again.items[-1]) == "The capital of France is Paris."
            gate.release()
            assert (await second.until(ResponseDone)).response.status == "completed"
            sounds = [event for event in [*first.seen, *second.seen] if isinstance(event, AudioDelta)]
            assert [sound.pts_ms for sound in sounds] == [0, 1320]
        assert "clear" not in playout.told


async def test_an_event_that_a_transport_took_and_did_not_deliver_is_given_to_the_next() -> None:
    playout = FakePlayout()
    async with house() as world:
        world.graph.hold("audio").step(1)
        async with world.sessions.open(config(SemanticVad()), lambda before, spawn: playout) as first:
            await first.handle(CreateItem(QUESTION))
            await first.handle(CreateResponse())
            events = first.events()
            while not isinstance(taken := await anext(events), AudioDelta):
                pass
        async with coming(world, first.token, playout) as second:
            assert await second.until(AudioDelta) is taken


async def test_an_answer_that_nobody_came_back_to_hear_stops_and_its_item_is_cut() -> None:
    playout = FakePlayout()
    async with house() as world:
        async with coming(world, playout=playout) as first:
            sound = await first.ask()
            await first.until(ResponseDone)
            playout.unfinished = (Heard(sound.response_id, sound.item_id, 700),)
        world.timers.fire(ANSWER_GRACE_S)
        assert playout.told[-1] == "clear"
        await settle()
        async with coming(world, first.attached.token, playout) as second:
            again = await second.until(Reopened)
            assert spoken(again.items[-1]) == "The capital"
            assert [entry.event for entry in again.untold] == [b"PlaybackCleared"]
        world.timers.fire(DETACHED_GRACE_S - 1)
        assert world.states() == [State.DETACHED]


async def test_an_answer_that_is_due_is_not_begun_for_nobody() -> None:
    async with house() as world:
        gate = world.graph.hold("transcript")
        async with coming(world) as first:
            await first.say(960, 1_280)
        world.timers.fire(ANSWER_GRACE_S)
        gate.release()
        await settle()
        assert world.graph.open_requests == 0
        assert [request for request in world.graph.of("thinker") if request.request_id not in world.graph.aborted] == []


async def test_a_written_answer_is_finished_for_whoever_comes_back() -> None:
    async with house() as world:
        gate = world.graph.hold("text")
        gate.step(1)
        async with coming(world) as first:
            await first.attached.handle(CreateItem(QUESTION))
            await first.attached.handle(CreateResponse(modality="text"))
            await first.until(TextDelta)
        gate.release()
        await settle()
        async with coming(world, first.attached.token) as second:
            answer = (await second.until(Reopened)).items[-1]
            assert (answer.status, answer.parts) == ("completed", (OutputText("The capital of France is Paris."),))
            assert await second.rest() == ["TextDone", "PartDone", "OutputItemDone", "ResponseDone"]


@pytest.mark.parametrize("last_seq", [None, 1])
async def test_what_was_written_down_waits_for_who_comes_to_hear_it(last_seq: int | None) -> None:
    async with house() as world:
        gate = world.graph.hold("text")
        gate.step(1)
        async with coming(world) as first:
            await first.attached.handle(CreateItem(QUESTION))
            await first.attached.handle(CreateResponse(modality="text"))
            await first.until(TextDelta)
        world.timers.fire(ANSWER_GRACE_S)  # what is said from now on is only written down
        gate.release()
        await settle()
        token = first.attached.token
        for _ in range(2):
            async with world.sessions.resume(token, last_seq=last_seq) as gone:  # before it was told anything
                token = gone.token
        async with coming(world, token) as second:
            untold = b"".join(entry.event for entry in (await second.until(Reopened)).untold)
            assert b"ResponseDone" in untold


async def test_who_comes_back_while_the_session_is_put_down_hears_that_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with house() as world:
        async with coming(world) as first:
            pass

        async def missed(*_: object) -> Missed:
            await world.sessions.put_down(first.attached.session_id, Dismissal.SUPERSEDED)
            return Missed((), complete=True)

        monkeypatch.setattr(world.store, "missed", missed)
        async with coming(world, first.attached.token, last_seq=1) as second:
            assert (second.attached.dismissed.is_set(), second.attached.why) == (True, Dismissal.SUPERSEDED)
            assert (second.seen, world.states()) == ([], [])
        async with coming(world, second.attached.token) as third:
            assert isinstance(third.seen[0], Reopened)


async def test_the_newest_transport_wins_and_the_other_can_neither_act_nor_read() -> None:
    async with house() as world, coming(world) as loser:
        await loser.until(Opened)
        async with coming(world, loser.attached.token) as winner:
            assert loser.attached.dismissed.is_set()
            assert not winner.attached.dismissed.is_set()
            with pytest.raises(CommandRefused, match="newer connection"):
                await loser.attached.handle(AppendAudio(tone(20)))
            await winner.ask()
            assert await loser.rest() == []
            loser.attached.leave()
        assert world.states() == [State.DETACHED]


async def test_a_transport_that_lost_before_it_read_hears_nothing() -> None:
    async with house() as world, world.sessions.open(config()) as loser, world.sessions.resume(loser.token) as winner:
        assert [event async for event in loser.events()] == []
        assert isinstance(await anext(winner.events()), Reopened)


async def test_what_the_loser_does_last_leaves_the_winner_alone() -> None:
    async with house() as world:
        async with coming(world) as loser:
            token = loser.attached.token
            winning = coming(world, token)
            winner = await winning.__aenter__()
            loser.attached.leave()
        assert world.states() == [State.ACTIVE]
        await winner.ask()
        await winning.__aexit__(None, None, None)


async def test_an_item_that_waited_for_a_slow_client_is_told_once() -> None:
    async with house(queue=1) as world, world.sessions.open(config()) as slow:  # its queue is full of Opened
        await slow.handle(AppendAudio(tone(500)))
        committing = asyncio.create_task(slow.handle(CommitAudio()))
        await settle()
        async with coming(world, slow.token) as second:
            assert len((await second.until(Reopened)).items) == 1
            await committing
            assert await second.rest() == ["TranscriptCompleted"]


async def test_from_the_servers_playout_to_a_client_that_plays_and_back() -> None:
    playout, another = FakePlayout(), FakePlayout()
    async with house() as world:
        world.graph.hold("audio").step(1)
        async with coming(world, playout=playout) as call:
            sound = await call.ask()
            playout.unfinished = (Heard(sound.response_id, sound.item_id, 700),)
        async with coming(world, call.attached.token) as socket:
            assert playout.told[-1] == "clear"
            again = await socket.until(Reopened)
            assert (again.response_id, again.items[-1].parts) == (sound.response_id, ())
            assert spoken((await socket.until(ResponseDone)).response.output[0]) == "The capital"
        async with coming(world, socket.attached.token, another) as call:
            assert (await call.until(Reopened)).response_id is None
            assert another.told == []


async def test_a_token_is_good_until_its_successor_is_used() -> None:
    async with house() as world:
        async with coming(world) as first:
            pass
        async with coming(world, first.attached.token) as second:
            pass
        async with coming(world, first.attached.token) as third:  # the reply to the second was lost
            pass
        async with coming(world, third.attached.token):
            pass
        for token in (first.attached.token, second.attached.token, "", "nobody.secret", first.attached.session_id):
            with pytest.raises(ResumeRefused, match="open a new session"):
                await world.sessions.resume(token).__aenter__()


async def test_the_store_is_told_once_that_a_token_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    async with house() as world:
        told: list[bytes] = []

        async def delivered(_session_id: str, _fence: Fence, token: bytes) -> None:
            told.append(token)

        monkeypatch.setattr(world.store, "delivered", delivered)
        async with coming(world) as first:
            for _ in range(50):  # a second of a microphone
                first.attached.delivered()
            await settle()
            assert len(told) == 1


async def test_a_session_that_nobody_came_back_to_ends_and_is_refused_then() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.ask()
        world.timers.fire(DETACHED_GRACE_S)
        await settle()
        assert (world.states(), world.graph.open_requests) == ([], 0)
        with pytest.raises(ResumeRefused):
            await world.sessions.resume(first.attached.token).__aenter__()


async def test_a_newcomer_sits_down_and_gets_nothing_of_who_sat_there_and_waits_in_the_store() -> None:
    async with house(seats=1) as world:
        world.graph.answers = [("canary",), ("something else",)]
        async with coming(world) as first:
            await first.ask()
        async with coming(world) as second:
            await second.ask()
            await second.until(ResponseDone)
            assert "canary" not in repr(second.seen)
            assert "canary" not in repr(world.graph.of("thinker")[-1])
            with pytest.raises(NotAdmitted):
                await world.sessions.resume(first.attached.token).__aenter__()
            second.attached.leave()
        async with coming(world, first.attached.token) as again:
            assert [item.role for item in (await again.until(Reopened)).items] == ["user", "assistant"]


async def test_a_changed_configuration_is_kept() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.attached.handle(Configure(config(None, instructions="Sing.")))
            await first.until(Configured)
        async with coming(world, first.attached.token) as second:
            assert (await second.until(Reopened)).config == config(None, instructions="Sing.")
            assert world.graph.open_requests == 0


async def test_many_transports_at_once_leave_one() -> None:
    async with house() as world:
        async with coming(world) as first:
            await first.ask()
        token = first.attached.token
        attached: list[Attached] = []

        async def come() -> None:
            async with world.sessions.resume(token) as one:
                attached.append(one)
                await one.dismissed.wait()

        rivals = [asyncio.create_task(come()) for _ in range(2)]
        await settle()
        assert [one.dismissed.is_set() for one in attached] == [True, False]
        assert world.states() == [State.ACTIVE]
        for rival in rivals:
            rival.cancel()
        await asyncio.wait(rivals)
        assert world.states() == [State.DETACHED]
