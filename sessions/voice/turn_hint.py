"""How sure one may be, in a pause, that the speaker has finished.

The words tell most: the thinker weighs whether the user's message ends where the transcript does. On 164 utterances with
inner pauses their log-probability told ends from pauses with an AUC above 0.9; smart-turn, which hears the sound, adds a
little. Of the recogniser's punctuation a question mark tells something, and a full stop nothing: it closes every sentence.
"""

import math

from engines.messages.to_gateway import ErrorKind
from engines.parameters import EndOfTurn, Generation, Message
from engines.payloads import Payload, audio
from engines.requests import Request, RequestFailed
from sessions.voice.audio_buffer import SAMPLE_RATE
from sessions.voice.recognition import Recogniser
from sessions.voice.state import VoiceState

MARKS = " \n.,;:!?-–—…"
"""What the recogniser may put at the end of any words."""


async def sureness(state: VoiceState, recogniser: Recogniser, pcm: bytes) -> float | None:
    """Between 0 and 1, or None when the words are not known. The sound is asked about while the words are weighed, not before:
    the recogniser, for which everything waits, has the ears' core to itself."""
    await recogniser.outcome()
    hearing = state.spawn(_sound(state, pcm)) if state.graph.offers("end_of_turn") else None
    try:
        words = await _words(state, recogniser)
        sound = await hearing if hearing is not None else 1.0
    finally:
        if hearing is not None:
            hearing.cancel()
    return None if words is None else words * sound**state.settings.sound_weight


async def _words(state: VoiceState, recogniser: Recogniser) -> float | None:
    """The thinker's probability that the words end here. It sees this turn alone, as the sweep of the settings did, after a
    system prompt that is always in its cache."""
    heard = await recogniser.outcome()
    text = "" if isinstance(heard, RequestFailed) else heard.text.rstrip()
    words = text.rstrip(MARKS)
    if not words:
        return None
    weight = state.settings.question_weight if text.endswith("?") else 1.0
    system = Message("system", state.settings.instructions)
    weighing = Generation(messages=(system, Message("user", words)), weigh_ending=True)
    request = state.request("thinker", ("text",), {"thinker": weighing})
    try:
        return min(math.exp(await _ask(state, request, Payload(), "ending")) * weight, 1.0)
    except RequestFailed:
        return None


async def _sound(state: VoiceState, pcm: bytes) -> float:
    """The end-of-turn model's probability; 1 when it fails, which changes nothing."""
    request = state.request("turn", ("end_of_turn",), {"turn": EndOfTurn()})
    try:
        return await _ask(state, request, audio(pcm, SAMPLE_RATE), "probability")
    except RequestFailed:
        return 1.0


async def _ask(state: VoiceState, request: Request, question: Payload, attribute: str) -> float:
    """One question, one number. Raises RequestFailed."""
    async with await state.graph.submit(request) as stream:
        await stream.push(question, final=True)
        answers = [delivery.payload.attributes async for delivery in stream]
    for answer in answers:
        if attribute in answer:
            return float(answer[attribute])
    raise RequestFailed(ErrorKind.ENGINE, request.entry, f"expected a chunk with {attribute!r}, got none")
