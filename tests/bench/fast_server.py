"""A whole server, gateway, media worker and all, with the real voice activity; its answers are quick and made up."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.server import Server, running_server

TESTS = str(Path(__file__).parent.parent)
DEPLOYMENT = """
pipeline: voice
workers:
  ears: {{stages: [vad, turn, asr]}}
  mind: {{stages: [thinker]}}
  mouth: {{stages: [narrator]}}
stages:
  vad: {{model: silero_vad, weights: silero-vad, slots: 64}}
  turn: {{model: "fakes.fast_voice:Finished", directory: "{folder}", slots: 64}}
  asr: {{model: "fakes.fast_voice:Hearing", directory: "{folder}", slots: 64}}
  thinker: {{model: "fakes.fast_voice:Storyteller", directory: "{folder}", slots: 64, options: {{sentences: {sentences}}}}}
  narrator: {{model: "fakes.fast_voice:Tones", directory: "{folder}", slots: 64}}
voices:
  tone: {{output: narration}}
session: {{maximum_sessions: 64, spoken_answer_tokens: 1000, detached_grace_s: {patience_s}}}
server: {{realtime_priority: {priority}, log_level: warning, webrtc: {{connect_timeout_s: {connect_s}}}}}
"""


@asynccontextmanager
async def fast_server(
    *, sentences: int, realtime_priority: bool = True, patience_s: float = 60.0, connect_s: float = 10.0
) -> AsyncGenerator[Server]:
    """Turns, words and voice are those of fakes/fast_voice.py; the rest is what users run. `sentences`: of an answer. It waits so
    long for those whose connection was lost, and for those who never connect."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fast.yaml"
        priority = str(realtime_priority).lower()
        written = DEPLOYMENT.format(
            folder=folder, sentences=sentences, priority=priority, patience_s=patience_s, connect_s=connect_s
        )
        file.write_text(written)
        async with running_server("--deployment", str(file), python_path=TESTS) as server:
            yield server
