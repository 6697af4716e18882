"""The probe of conversations, and what it counts."""

from pathlib import Path

import numpy as np
import pytest

from fakes.edge import ServeEdge
from fakes.graph import FakeGraph, silence, tone
from realtime.calibration.person import Turn
from realtime.calibration.probe import ProbeFailed
from realtime.calibration.result import keep
from realtime.calibration.sound import RATE_HZ, Utterance, with_pause
from realtime.calibration.voice import BARS, VoiceProbe, figures
from realtime.commands import calibrate
from realtime.deployment import load
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.retention.settings import SessionLimits

MINIMAL = """
pipeline: voice
workers: {mind: {stages: [thinker]}}
stages: {thinker: {model: vllm, weights: smollm2-135m-instruct}}
"""


async def test_conversations_at_a_server_are_judged(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge()
    probe = VoiceProbe(edge.url, [Utterance(tone(400))], turns=2)
    verdict = await probe.run(3)
    assert verdict.figures["unanswered"] == 0
    assert 0 < verdict.figures["turn_p95_ms"] < 5_000
    assert len(graph.of("thinker")) >= 6
    await edge.idle()


async def test_a_server_without_room_for_all_fails_the_probe(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=SessionLimits(maximum_sessions=1), admission=AdmissionSettings(longest_queue=0))
    with pytest.raises(ProbeFailed, match="the server ended a conversation"):
        await VoiceProbe(edge.url, [Utterance(tone(300))], turns=1).run(2)


def test_a_turn_counts_what_a_listener_would_notice() -> None:
    turn = Turn(spoken_at=10.0, committed_at=[9.5, 10.4])
    turn.heard(silence(100), 10.5)
    turn.heard(tone(100), 10.6)  # just in time
    turn.heard(tone(100), 10.8)  # 100 ms late
    assert (turn.underruns, turn.was_cut_off) == (1, True)
    assert turn.latency_ms == pytest.approx(600)
    told = figures([turn, Turn(spoken_at=20.0, committed_at=[20.1])])
    assert told == {"turn_p95_ms": 600, "underruns": 1, "cut_off_share": 0.5, "unanswered": 1}
    assert set(BARS) == set(told)


def test_nobody_who_is_not_answered_passes_for_quick() -> None:
    assert figures([Turn()])["turn_p95_ms"] == float("inf")


def test_a_question_begins_and_ends_with_speech_and_has_its_pause_inside() -> None:
    pcm = silence(300) + tone(500) + silence(50) + tone(500) + silence(700)
    assert with_pause(pcm, 0).seconds == pytest.approx(1.05, abs=0.02)
    paused = with_pause(pcm, 400)
    assert paused.seconds == pytest.approx(1.45, abs=0.02)
    quiet = np.abs(np.frombuffer(paused.pcm, "<i2")[RATE_HZ // 2 : RATE_HZ // 2 + RATE_HZ * 4 // 10]).max()
    assert quiet == 0


def test_a_voice_that_cannot_be_heard_is_no_use() -> None:
    with pytest.raises(ProbeFailed, match="cannot be heard"):
        with_pause(silence(500), 0)


def test_what_is_found_stands_beside_the_deployment_with_what_was_found_before(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINIMAL)
    beside = tmp_path / "mine.seats.yaml"
    robots = CalibratedSeats(seats=40)
    voice = CalibratedSeats(seats=6, measured={"turn_p95_ms": 900.0}, machine="2 × Ærøskøbing: 1")
    keep(beside, load(file), "robot", robots)
    keep(beside, load(file), "voice", voice)
    assert load(file).seats == {"robot": robots, "voice": voice}
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".yaml"] == []


def test_a_bar_that_is_none_is_named_before_anything_starts(tmp_path: Path) -> None:
    parser = calibrate.argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    with pytest.raises(ProbeFailed, match=r"--bar: expected one of turn_p95_ms, .*, got speed"):
        calibrate.run(parser.parse_args(["--bar", "speed=3", "--deployment", str(tmp_path / "none")]))
    for wrong in (["--most", "0"], ["--bar", "turn_p95_ms"], ["robots"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
