"""A whole server, gateway, media worker and all, with the real voice activity; its answers are quick and made up."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.server import Server, running_server

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
session: {{maximum_sessions: 64, spoken_answer_tokens: 1000}}
server: {{realtime_priority: {priority}, log_level: warning}}
"""


@asynccontextmanager
async def fast_server(*, sentences: int, realtime_priority: bool = True) -> AsyncGenerator[Server, None]:
    """Turns, words and voice are those of fakes/fast_voice.py; the rest is what users run. `sentences`: of an answer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fast.yaml"
        file.write_text(DEPLOYMENT.format(folder=folder, sentences=sentences, priority=str(realtime_priority).lower()))
        async with running_server("--deployment", str(file)) as server:
            yield server
