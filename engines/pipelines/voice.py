"""Speech in, speech out: hear, think, speak."""

from engines.bridges.frame_windows import FrameWindows
from engines.bridges.speakable_clauses import SpeakableClauses, narrator_clauses
from engines.bridges.speech_segments import SpeechSegments
from engines.bridges.transcript_prompt import TranscriptPrompt
from engines.parameters import Activity, EndOfTurn, Generation, Recognition, Speech
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage

AR, GENERATION = ExecutionType.AR, ExecutionType.GENERATION

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
        Edge("talker", "code2wav", FrameWindows),
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
