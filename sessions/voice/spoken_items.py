"""What the user said, as items of the conversation whose transcripts come later."""

import asyncio

import msgspec

from engines.requests import RequestFailed
from sessions.voice.conversation import Conversation
from sessions.voice.events import AudioCommitted, ItemAdded, ItemDone, Recognised, TranscriptCompleted, TranscriptFailed
from sessions.voice.items import InputAudio, Item
from sessions.voice.recognition import Recogniser, Transcript
from sessions.voice.state import VoiceState


class SpokenItems:
    def __init__(self, state: VoiceState, conversation: Conversation) -> None:
        self._state = state
        self._conversation = conversation
        self._pending: set[asyncio.Task[Transcript | RequestFailed]] = set()

    def announce(self, item_id: str) -> None:
        """Before the client is told the id of what will be committed."""
        self._conversation.announce(item_id)

    async def commit(
        self, item_id: str, duration_ms: int, recogniser: Recogniser, *, answer_follows: bool = False
    ) -> asyncio.Task[Transcript | RequestFailed]:
        """Adds the item at once; the task ends when its transcript stands in the conversation."""
        item = Item(id=item_id, role="user", status="completed", parts=(InputAudio(None, duration_ms),))
        previous = self._conversation.add(item)
        transcribing = self._state.spawn(self._transcribe(item, recogniser))
        self._pending.add(transcribing)
        transcribing.add_done_callback(self._pending.discard)
        committed = AudioCommitted(item_id, previous, answer_follows)
        await self._state.emit(committed, ItemAdded(item, previous), ItemDone(item, previous))
        return transcribing

    async def settled(self) -> None:
        """Returns when no transcript is outstanding."""
        while self._pending:
            await asyncio.wait(self._pending)

    async def _transcribe(self, item: Item, recogniser: Recogniser) -> Transcript | RequestFailed:
        outcome = await recogniser.outcome()
        if isinstance(outcome, RequestFailed):
            await self._state.emit(TranscriptFailed(item.id, 0, str(outcome)))
            return outcome
        duration_ms = round(outcome.audio_seconds * 1000)
        heard = msgspec.structs.replace(item, parts=(InputAudio(outcome.text, duration_ms),))
        self._conversation.replace(heard)
        if self._state.config.transcribe_input:
            await self._state.emit(TranscriptCompleted(item.id, 0, outcome.text, outcome.audio_seconds))
        else:
            await self._state.emit(Recognised(item.id, outcome.text, outcome.audio_seconds))
        return outcome
