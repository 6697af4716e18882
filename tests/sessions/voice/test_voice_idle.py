"""The user says nothing after the agent has."""

import pytest

from fakes.graph import MS_PER_CHARACTER, FakeGraph
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.client_playout import ClientPlayout
from sessions.voice.commands import CreateResponse
from sessions.voice.config import SemanticVad, ServerVad, TurnDetection
from sessions.voice.events import AudioCommitted, IdleTimeout, ResponseCreated, ResponseDone, SpeechStarted, TranscriptCompleted
from sessions.voice.idle import KEPT_MS

ANSWER_MS = len("The capital of France is Paris.") * MS_PER_CHARACTER
IDLE_MS = 2_000
WINDOW_MS = 32


async def asked(client: VoiceClient) -> None:
    await client.send(CreateResponse())
    await client.until(ResponseDone)
    await settle()


async def quiet(client: VoiceClient, duration_ms: int) -> None:
    await client.say(0, duration_ms)


async def test_the_agent_speaks_again_so_long_after_its_answer_was_played() -> None:
    async with talking(voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS))) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + IDLE_MS - 100)
        assert client.of(IdleTimeout) == []
        await quiet(client, 200)
        timeout = await client.until(IdleTimeout)
        assert timeout.audio_start_ms == pytest.approx(ANSWER_MS, abs=2 * WINDOW_MS)
        assert timeout.audio_end_ms - timeout.audio_start_ms == pytest.approx(IDLE_MS, abs=WINDOW_MS)
        assert (await client.until(AudioCommitted)).item_id == timeout.item_id
        await client.until(ResponseCreated)
        await client.until(ResponseDone)


async def test_it_waits_again_after_each_answer() -> None:
    async with talking(voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS))) as client:
        await asked(client)
        await quiet(client, 3 * (ANSWER_MS + IDLE_MS) + 300)
        assert len(client.of(IdleTimeout)) == 3


async def test_nobody_is_prompted_before_the_first_answer() -> None:
    async with talking(voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS))) as client:
        await quiet(client, 2 * IDLE_MS)
        assert client.of(IdleTimeout) == []


async def test_speech_ends_the_waiting() -> None:
    async with talking(
        settings=UNGUARDED, voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS, create_response=False))
    ) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + 1_000)
        await client.say(300, 3 * IDLE_MS)
        await client.until(SpeechStarted)
        assert client.of(IdleTimeout) == []


@pytest.mark.parametrize("detection", [ServerVad(), SemanticVad()])
async def test_without_the_setting_it_waits_for_ever(detection: TurnDetection) -> None:
    async with talking(voice_config=config(detection)) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + 2 * IDLE_MS)
        assert client.of(IdleTimeout) == []


@pytest.mark.parametrize("cough_ms", [128, 160, 320])
async def test_a_cough_after_the_answer_starts_the_waiting_anew(cough_ms: int) -> None:
    """The shorter ones begin no turn, the longer ones a turn in which no words are found."""
    graph = FakeGraph()
    graph.transcripts = [""]
    async with talking(graph, voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS))) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + 500)
        await client.say(cough_ms, IDLE_MS - 100)
        assert client.of(IdleTimeout) == []
        await quiet(client, 2_000)
        timeout = await client.until(IdleTimeout)
        assert timeout.audio_end_ms - timeout.audio_start_ms == pytest.approx(IDLE_MS, abs=WINDOW_MS)
        await client.until(ResponseDone)


async def test_a_noise_over_the_end_of_the_answer_that_is_nothing_starts_the_waiting_anew() -> None:
    graph = FakeGraph()
    graph.transcripts = [""]
    playout = ClientPlayout(lambda: client.now_s)
    async with talking(graph, voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS)), playout=playout) as client:
        await asked(client)
        await quiet(client, ANSWER_MS - 150)
        assert playout.has_floor
        await client.say(320, 400)
        assert not playout.has_floor
        await quiet(client, IDLE_MS + 200)
        assert client.of(SpeechStarted) == []
        assert len(client.of(IdleTimeout)) == 1


@pytest.mark.parametrize(("idle_ms", "heard_ms"), [(IDLE_MS, IDLE_MS), (5_000, 5_000), (KEPT_MS + 2_000, KEPT_MS)])
async def test_all_is_recognised_that_the_item_covers(idle_ms: int, heard_ms: int) -> None:
    async with talking(voice_config=config(ServerVad(idle_timeout_ms=idle_ms))) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + 100)
        await client.say(32, idle_ms + 200)
        timeout = await client.until(IdleTimeout)
        heard = await client.until(TranscriptCompleted)
        assert heard.audio_seconds * 1_000 == timeout.audio_end_ms - timeout.audio_start_ms
        assert heard.audio_seconds * 1_000 == pytest.approx(heard_ms, abs=WINDOW_MS)


async def test_a_question_whose_words_are_late_is_answered_before_the_agent_speaks_again() -> None:
    graph = FakeGraph()
    async with talking(graph, voice_config=config(ServerVad(idle_timeout_ms=IDLE_MS))) as client:
        await asked(client)
        await quiet(client, ANSWER_MS + 100)
        words = graph.hold("transcript")
        await client.say(960, 2 * IDLE_MS)
        assert client.of(IdleTimeout) == []
        words.release()
        await client.until(ResponseDone)
        assert client.of(IdleTimeout) == []
