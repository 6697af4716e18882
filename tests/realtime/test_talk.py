"""`antiphon talk` against an edge with a fake graph."""

import asyncio
import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from engines.messages.to_gateway import ErrorKind, StageState, StageStatus
from fakes import sounds
from fakes.edge import Edge, FakeStages, ServeEdge
from fakes.graph import MS_PER_CHARACTER, FakeGraph
from realtime.cli import main
from realtime.talk import conversation
from realtime.talk.playback import Playback
from realtime.talk.player import Player
from realtime.talk.question import WavError, read_wav, to_speech
from sessions.voice.commands import AcknowledgePlayback, Command
from sessions.voice.session import VoiceSession

ROOT = Path(__file__).parents[2]
ANSWER = "The capital of France is Paris."
QUESTION = sounds.file(sounds.sine(0.7, 300, 44_100), 44_100, "WAV", channels=2)
ANSWER_S = len(ANSWER) * MS_PER_CHARACTER / 1000


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and no program to be found but what a test puts into its `bin`."""
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def question(here: Path) -> Path:
    file = here / "question.wav"
    file.write_bytes(QUESTION)
    return file


def player(here: Path, name: str, script: str) -> None:
    program = here / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


async def talk(*arguments: object) -> int:
    return await asyncio.to_thread(main, ["talk", *map(str, arguments)])


async def test_a_spoken_question_is_answered_and_saved(
    edge: Edge, question: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await talk(question, "--url", edge.url) == 0
    shown = capsys.readouterr().out
    assert "you: What is the capital of France?" in shown
    assert f"answer: {ANSWER}" in shown
    assert "first sound" in shown
    assert "saved the answer to answer.wav" in shown
    samples, rate = sounds.read((here / "answer.wav").read_bytes())
    assert len(samples) / rate == pytest.approx(ANSWER_S, abs=0.01)


async def test_a_written_question_and_a_chosen_voice_and_file(
    edge: Edge, graph: FakeGraph, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await talk("--text", "Hello", "--url", edge.url, "--voice", "heart", "--out", here / "a.wav") == 0
    assert "you: Hello" in capsys.readouterr().out
    assert (here / "a.wav").stat().st_size > 44
    assert graph.of("thinker")[0].outputs == ("text", "narration")


async def test_the_first_player_found_gets_the_samples(
    edge: Edge, graph: FakeGraph, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph.answers = [("Yes.",)]
    seconds = 4 * MS_PER_CHARACTER / 1000
    player(here, "aplay", f"/bin/cat > {here}/played; exec /bin/sleep {seconds}")
    assert await talk("--text", "Hello", "--url", edge.url) == 0
    assert (here / "played").stat().st_size == int(seconds * 24_000) * 2
    assert "played by aplay\n" in capsys.readouterr().out
    assert not (here / "answer.wav").exists()


def _forty(_: Player) -> int:
    return 40


async def test_the_server_is_told_how_far_the_player_is(
    edge: Edge, graph: FakeGraph, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer goes on only when the server has heard of it."""
    gate = graph.hold("audio")
    gate.step(1)
    told: list[AcknowledgePlayback] = []
    handle = VoiceSession.handle

    async def noted(session: VoiceSession, command: Command) -> None:
        await handle(session, command)
        if isinstance(command, AcknowledgePlayback):
            told.append(command)
            gate.release()

    monkeypatch.setattr(VoiceSession, "handle", noted)
    monkeypatch.setattr(Player, "played_ms", _forty)
    player(here, "aplay", f"exec /bin/cat > {here}/played")
    assert await talk("--text", "Hello", "--url", edge.url) == 0
    assert told == [AcknowledgePlayback(told[0].item_id, 0, 40)]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 1", "exit code 1"),
        ("/bin/cat > /dev/null; exit 3", "exit code 3"),
        ("/bin/cat > /dev/null; echo ALSA >&2; echo audio open failed >&2", "ALSA; audio open failed"),
        ("/bin/cat > /dev/null", "done too soon for 1.9 s of sound"),
    ],
)
async def test_a_player_that_plays_nothing_leaves_a_file(
    edge: Edge, here: Path, capsys: pytest.CaptureFixture[str], script: str, why: str
) -> None:
    player(here, "ffplay", script)
    assert await talk("--text", "Hello", "--url", edge.url) == 0
    shown = capsys.readouterr().out
    assert "ffplay may not have played it" in shown
    assert why in shown
    assert "saved the answer to answer.wav" in shown
    assert (here / "answer.wav").stat().st_size == 44 + int(ANSWER_S * 24_000) * 2


@pytest.mark.parametrize("out", ["/nonexistent/x.wav", "/proc", "/proc/x.wav"])
async def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(
    edge: Edge, graph: FakeGraph, here: Path, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    assert await talk("--text", "Hello", "--url", edge.url, "--out", out) == 1
    assert f"cannot write {out}" in capsys.readouterr().err
    assert not graph.requests


async def test_a_question_that_fails_leaves_no_file(edge: Edge, graph: FakeGraph, here: Path) -> None:
    graph.fail("text", ErrorKind.ENGINE)
    assert await talk("--text", "Hello", "--url", edge.url, "--out", "mine.wav") == 1
    assert not (here / "mine.wav").exists()
    assert not (here / "answer.wav").exists()


@pytest.mark.parametrize(
    ("into", "complaint"), [("| /usr/bin/head -c 1", ""), ("> /dev/full", "standard output: No space left on device")]
)
async def test_an_output_that_nobody_reads_is_no_traceback(edge: Edge, here: Path, into: str, complaint: str) -> None:
    command = f"{sys.executable} -m realtime.cli talk --text Hello --out {here}/a.wav --url {edge.url} {into}"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(command, stdout=pipe, stderr=pipe, cwd=ROOT)
    _, said = await process.communicate()
    assert "Traceback" not in said.decode()
    assert "Exception ignored" not in said.decode()
    assert complaint in said.decode()


async def test_stdin_is_a_question_too(edge: Edge, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUESTION)))
    assert await talk("-", "--url", edge.url, "--no-play") == 0
    assert (here / "answer.wav").exists()


async def test_no_server_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await talk("--text", "Hello", "--url", "http://127.0.0.1:9") == 1
    assert capsys.readouterr().err == ("antiphon talk: no server answers at http://127.0.0.1:9; start one with: deploy/serve\n")


@pytest.mark.parametrize("form", ["{host}", "http://{host}/", "http://{host}/v1", "ws://{host}/v1/", "{host}/v1"])
async def test_the_address_may_be_written_in_many_ways(edge: Edge, here: Path, form: str) -> None:
    assert await talk("--text", "Hello", "--url", form.format(host=edge.url.removeprefix("http://"))) == 0


async def test_another_path_is_told_how_the_address_should_be(edge: Edge, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await talk("--text", "Hello", "--url", f"{edge.url}/api") == 1
    assert "give it as --url http://HOST:PORT" in capsys.readouterr().err


async def test_a_server_that_is_loading_is_told_so(serve_edge: ServeEdge, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stages = FakeStages()
    stages.thinker = StageStatus("thinker", StageState.LOADING, 8)
    edge = await serve_edge(stages=stages)
    assert await talk("--text", "Hello", "--url", edge.url) == 1
    assert "still loading thinker; try again" in capsys.readouterr().err


async def test_an_answer_cut_at_its_limit_says_so(
    edge: Edge, graph: FakeGraph, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph.finish_reason = "length"
    assert await talk("--text", "Hello", "--url", edge.url) == 0
    assert f"{ANSWER} … cut off at the limit of 2 tokens\n" in capsys.readouterr().out


async def test_a_question_without_speech_is_told_soon(
    edge: Edge, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "NO_SPEECH_S", 0.2)
    (here / "silence.wav").write_bytes(sounds.file(sounds.sine(0.3) * 0, 24_000, "WAV"))
    assert await talk("silence.wav", "--url", edge.url) == 1
    assert "has heard no speech" in capsys.readouterr().err


async def test_a_missing_key_is_one_sentence(
    serve_edge: ServeEdge, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = await serve_edge(api_key="secret")
    assert await talk("--text", "Hello", "--url", edge.url) == 1
    assert "ANTIPHON_API_KEY" in capsys.readouterr().err
    monkeypatch.setenv("ANTIPHON_API_KEY", "secret")
    assert await talk("--text", "Hello", "--url", edge.url) == 0


async def test_an_unknown_voice_is_one_sentence(edge: Edge, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await talk("--text", "Hello", "--url", edge.url, "--voice", "nobody") == 1
    assert "joe, heart" in capsys.readouterr().err


async def test_an_answer_that_fails_is_one_sentence(
    edge: Edge, graph: FakeGraph, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph.fail("text", ErrorKind.ENGINE, message="the model broke")
    assert await talk("--text", "Hello", "--url", edge.url) == 1
    assert "the model broke" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), "expected either"), (("a.wav", "--text", "x"), "expected either"), (("none.wav",), "cannot read none.wav")],
)
async def test_wrong_arguments(here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    assert await talk(*arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("subtype", "rate", "channels"),
    [
        ("PCM_16", 24_000, 1),
        ("PCM_16", 44_100, 2),
        ("PCM_24", 48_000, 2),
        ("PCM_32", 16_000, 1),
        ("PCM_U8", 8_000, 1),
        ("FLOAT", 48_000, 6),
        ("DOUBLE", 22_050, 1),
    ],
)
def test_any_wav_becomes_speech(subtype: str, rate: int, channels: int) -> None:
    pcm = to_speech(sounds.file(sounds.sine(1, 440, rate), rate, "WAV", subtype, channels), "a.wav")
    samples = np.frombuffer(pcm, "<i2")
    assert len(samples) == pytest.approx(24_000, abs=2)
    assert sounds.pitch(samples, 24_000) == pytest.approx(440, abs=2)
    assert np.abs(samples[100:-100]).max() == pytest.approx(13_107, rel=0.03)


def test_a_wav_of_unknown_length_is_read_to_its_end() -> None:
    layout = struct.pack("<IHHIIHH", 16, 1, 1, 24_000, 48_000, 2, 16)
    wav = b"RIFF\xff\xff\xff\xffWAVEfmt " + layout + b"data\xff\xff\xff\xff" + sounds.sine(0.5).tobytes()
    assert len(to_speech(wav, "a.wav")) == 24_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no WAV file"),
        (b"ID3 some mp3", "is no WAV file"),
        (sounds.file(sounds.sine(0.1), 24_000, "WAV")[:40], "without sound"),
        (sounds.file(sounds.sine(0.1), 24_000, "WAV"), "expected at least 0.2 s of sound, got 0.1 s"),
        (sounds.file(sounds.sine(0.1), 24_000, "WAV", "ULAW"), "got WAV format 7 with 8 bits"),
    ],
)
def test_what_is_no_sound_is_refused(here: Path, data: bytes, words: str) -> None:
    (here / "a.wav").write_bytes(data)
    with pytest.raises(WavError, match=words):
        read_wav("a.wav")


class _Ear:
    def __init__(self) -> None:
        self.played: int | None = 0

    def hear(self, pcm: bytes) -> None:
        pass

    def played_ms(self) -> int | None:
        return self.played


def test_what_was_played_is_told_by_answer_and_only_when_it_has_grown() -> None:
    ear = _Ear()
    playback = Playback(ear)
    ear.played = 40
    assert playback.news() is None
    playback.sound("first", bytes(48_000))
    ear.played = 400
    assert playback.news() == {"type": "output_audio_buffer.played", "item_id": "first", "content_index": 0, "audio_ms": 400}
    assert playback.news() is None
    playback.sound("second", bytes(48_000))
    assert playback.news() is None
    ear.played = 1_300
    assert playback.news() == {"type": "output_audio_buffer.played", "item_id": "second", "content_index": 0, "audio_ms": 300}
    ear.played = None
    assert playback.news() is None
