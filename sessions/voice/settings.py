"""Every tunable of a spoken conversation. They stand in the deployment's section `session`."""

from typing import Annotated, TypeAlias

import msgspec

Probability: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0)]

BACKCHANNELS = (
    *("yeah", "yes", "yep", "right", "okay", "ok", "sure", "i see", "uh huh", "oh", "ah", "aha"),
    *("wow", "really", "cool", "nice", "thanks", "thank you"),
)


class VoiceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every tunable of turn-taking, recognition, history and answers. Silence is counted from the end of speech."""

    onset_threshold: Probability = 0.5
    """Speech probability that starts a turn under semantic_vad; server_vad brings its own."""
    release_margin: Probability = 0.15
    """Speech ends below threshold minus this: hysteresis as silero's own reference code has it."""
    onset_windows: Count = 3
    """Voiced windows of 32 ms in a row that make an onset (or a resumption): a click is one or two long."""
    hold_threshold: Probability = 0.35
    """Speech probability from which an answer being played is held back until the onset is confirmed, or not. On a third of the
    set of `bench turns` 0.25 held it no sooner (half within 100 ms of the onset, in a quiet room 95 % within 176 ms), but for
    600 ms and not 240 where somebody coughed, knocked or typed, most of it in a full room. 0.5 held it 40 ms later."""
    hold_loudness_db: Annotated[float, msgspec.Meta(ge=0.0)] = 15.0
    """A sound of two windows, so much louder than the room, holds the answer back as well, for a quarter of a second at most: an
    "s" is no voice yet. 0: voice activity alone does."""
    hold_windows: Count = 3
    """Windows below it in a row after which the onset is denied, and the answer plays on: a soft beginning flickers."""
    minimum_speech_ms: Milliseconds = 160
    """A turn with less voiced time is dropped: a short "yes" has 200 ms and more."""
    prefix_padding_ms: Milliseconds = 480
    """Audio kept from before the onset under semantic_vad: nine of ten soft beginnings are noticed within 354 ms, all
    within 556 ms (measured), and an onset takes three windows more."""
    interruption_ms: Milliseconds = 640
    """While the agent speaks: voiced time after which it is asked which words were said, if they interrupt; what is shorter is
    asked for at its end. Meanwhile the agent is held. Without guards of words this length interrupts. 0: every onset does.

    On the set of `bench turns` 480 took unfinished hums for words, 800 found nothing else than 640, later."""
    interruption_words: Annotated[int, msgspec.Meta(ge=0)] = 1
    """Words that an utterance needs to interrupt: with 1 coughs and knocks do not. 0, and no `backchannels`: words are not asked
    for, and what is shorter than `interruption_ms` does not interrupt."""
    backchannels: tuple[str, ...] = BACKCHANNELS
    """What a listener says without wanting the floor, and what the default recogniser hears in coughs and hums ("thank you", in
    four of the set's). Hums are among them in every spelling. Empty: no such tolerance."""
    echo_guard: bool = True
    """Tells the agent's own voice in the microphone by its level, or, where the client plays, by its words. Without it the agent
    interrupts itself in all scenes of the set in which it is fed back at −20 and −30 dB, with it in none."""
    echo_guard_ms: Milliseconds = 3_000
    """From the agent's first sound, until an echo canceller has settled: its own words do not interrupt it then, even where its
    level is known and seems to tell that it is somebody else."""
    interruption_words_ms: Milliseconds = 800
    """Audio heard while the words are awaited; then the user has the floor, as when the recogniser fails."""
    maximum_turn_ms: Milliseconds = 60_000
    """A longer turn, counted from its onset, is ended by force: bounds the audio that a session holds."""

    pause_ms: Milliseconds = 32
    """Silence after which recognition starts. 96 ms began it 4 % less often, wrote as many words wrong (16 % of a set half in
    noise), and the first sound was ready 90 ms later."""
    sound_weight: Annotated[float, msgspec.Meta(ge=0.0)] = 0.2
    """Sureness that a turn is over = P(words end here) × P(sound ends here) to this power."""
    question_weight: Positive = 2.0
    """Factor on P(words end here) when the recogniser has heard a question."""
    hint_finished: Probability = 0.25
    """Sureness from which the shortest silence is enough."""
    hint_unfinished: Probability = 0.2
    """Sureness up to which the longest silence is asked for; between the two it is interpolated."""
    finished_silence_ms: Milliseconds = 384
    unfinished_silence_ms: Milliseconds = 896
    """Longer than the inner pauses of 200–700 ms of a speaker who is thinking. Also used while no hint has come.

    The last six were swept together over 334 utterances, 252 with such a pause: of these 2.8 % were cut off too early; half of
    all were decided within 560 ms of their end, 95 of 100 within 1,070 ms. A shorter `finished` would gain little: with its head
    start the first sound is ready some 370 ms after the end of speech; 320 cut off 6 of 108 in `bench voice`."""
    eagerness_low: Positive = 1.5
    eagerness_high: Positive = 0.7
    """Factors on the silence windows; medium and auto are 1. Of the 106 questions of the set of `bench turns` (pauses inside two
    of three, noise in half): low ended them after 805 ms (median), medium after 665 ms, both cut off 1 %; high cut off 9 %, and
    ended the others after 485 ms."""
    head_start: bool = True
    """Begin the answer in every pause and hold it back until the turn has ended: costs work that is thrown away when the
    speaker goes on, saves the time to the first sound when not."""
    hint_audio_ms: Milliseconds = 8_000
    """What the end-of-turn model looks at."""

    recognition_segment_ms: Milliseconds = 25_000
    """Longer audio goes through the vad stage, which cuts it at pauses: the recogniser hears 30 s at most."""
    minimum_commit_ms: Milliseconds = 100
    """Less is refused as an empty buffer, as OpenAI does."""
    maximum_buffer_ms: Milliseconds = 360_000
    """Audio appended but not yet committed or listened to. Above the 15 MiB (327 s) that one append may carry."""
    listen_retry_ms: Milliseconds = 1_000
    """Least time between two attempts to open voice activity again after it was lost."""

    event_queue: Count = 256
    """Events waiting for a slow reader before the session's own engine work stops."""
    maximum_out_of_band: Count = 4
    """Responses outside the conversation at a time."""
    maximum_items: Count = 1_000
    """Items in a conversation; the oldest leave, long after they left the model's context."""
    maximum_context_tokens: Count = 1_536
    """Budget for prompt and history: leaves a quarter of a 2,048-token context to the answer."""
    context_kept_share: Share = 0.5
    """When the budget is exceeded the history shrinks to this share of it, so that the next turns find their prefix cached."""
    characters_per_token: Positive = 3.5
    """Estimate for English text, on the safe side (measured near 4.2)."""
    spoken_answer_tokens: Count = 120
    """Cap on a spoken answer when the client sets none: about half a minute of speech."""
    repetition_penalty: Positive = 1.1
    """What the small default model needs not to loop."""
    instructions: str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    """Used when the client gives none; the prompt that the default model was trained with."""
    characters_per_second: Positive = 15.0
    """Pace of speech, to place a cut inside a clause whose audio has not all been made."""
