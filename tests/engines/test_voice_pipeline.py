"""The voice pipeline and its default deployment, as records."""

import subprocess
import sys

import pytest

from engines.pipelines.voice import VOICE


@pytest.mark.parametrize(
    ("entry", "outputs", "stages"),
    [
        ("vad", ("activity",), ("vad",)),
        ("turn", ("end_of_turn",), ("turn",)),
        ("asr", ("transcript",), ("asr",)),
        ("vad", ("transcript",), ("vad", "asr")),
        ("thinker", ("text",), ("thinker",)),
        ("thinker", ("text", "audio"), ("thinker", "talker", "code2wav")),
        ("thinker", ("text", "narration"), ("thinker", "narrator")),
        ("vad", ("transcript", "text", "audio"), ("vad", "asr", "thinker", "talker", "code2wav")),
        ("talker", ("audio",), ("talker", "code2wav")),
        ("narrator", ("narration",), ("narrator",)),
    ],
)
def test_a_request_opens_only_what_it_needs(entry: str, outputs: tuple[str, ...], stages: tuple[str, ...]) -> None:
    VOICE.check()
    assert VOICE.active_stages(entry, outputs) == stages


def test_a_voice_without_ears_still_speaks() -> None:
    assert VOICE.offers("audio", ("talker", "code2wav"))
    assert not VOICE.offers("audio", ("vad", "asr", "thinker", "talker"))


def test_the_gateways_side_loads_no_model_library() -> None:
    heavy = ("torch", "vllm", "transformers", "diffusers", "onnxruntime", "ctranslate2", "av")
    program = f"""
import sys
import engines.pipelines.voice, engines.runtime, realtime.deployment
sys.exit([module for module in {heavy} if module in sys.modules] or None)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
