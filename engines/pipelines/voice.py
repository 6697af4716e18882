"""Speech in, speech out: hear, think, speak."""

from engines.bridges.speakable_clauses import SpeakableClauses, narrator_clauses
from engines.bridges.speech_segments import SpeechSegments
from engines.bridges.transcript_prompt import TranscriptPrompt
from engines.bridges.windows import Windows
from engines.parameters import Activity, EndOfTurn, Generation, Recognition, Speech
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage
from engines.schedule import ChunkSchedule

AR, GENERATION = ExecutionType.AR, ExecutionType.GENERATION

FRAMES = ChunkSchedule(ramp=(24, 72, 144), left_context=12, right_context=12)
"""Frames last 11.6 ms. 24 of them are the first 279 ms of sound. Each further window, contexts included, is decoded before what
was emitted has been played, as long as decoding takes at most a quarter of real time (measured 0.05). A 4 s clause of 344 frames
is decoded in four windows, 416 frames: 1.21 times; at 12 frames of context the joined samples equal whole decoding to 2e-6."""

VOICE = Pipeline(
    name="voice",
    stages=(
        Stage("vad", GENERATION, emits="activity", parameters=Activity),
        Stage("turn", GENERATION, emits="end_of_turn", parameters=EndOfTurn),
        Stage("asr", GENERATION, emits="transcript", parameters=Recognition),
        Stage("thinker", AR, emits="text", parameters=Generation),
        Stage("talker", GENERATION, emits="frames", parameters=Speech, intake=SpeakableClauses),
        Stage("code2wav", GENERATION, emits="audio", parameters=Speech),
        Stage("narrator", GENERATION, emits="audio", parameters=Speech, intake=narrator_clauses),
    ),
    edges=(
        Edge("vad", "asr", SpeechSegments),
        Edge("asr", "thinker", TranscriptPrompt),
        Edge("thinker", "talker", SpeakableClauses),
        Edge("thinker", "narrator", narrator_clauses),
        Edge("talker", "code2wav", Windows("frames", FRAMES, segment_end="clause_final")),
    ),
    outputs=(
        Output("activity", "vad"),
        Output("end_of_turn", "turn"),
        Output("transcript", "asr"),
        Output("text", "thinker"),
        Output("audio", "code2wav"),
        Output("narration", "narrator"),
    ),
    entries=("vad", "turn", "asr", "thinker", "talker", "narrator"),
)
