"""The responses of a session: one at a time in the conversation, any number of them out of band."""

from collections.abc import Callable

import msgspec

from engines.parameters import Message
from engines.requests import RequestFailed
from sessions.voice.answer import Answer
from sessions.voice.answer_plan import AnswerPlan, plan_answer
from sessions.voice.answer_timing import AnswerClock, SpokenTurn
from sessions.voice.commands import CommandRefused, CreateResponse
from sessions.voice.conversation import Conversation, Entry, text_of
from sessions.voice.events import AudioDelta, ItemTruncated, PlaybackCleared, StatusReason
from sessions.voice.head_start import HeadStart
from sessions.voice.history import forget_what_left, messages_of
from sessions.voice.items import InputAudio, Item
from sessions.voice.playout import Heard
from sessions.voice.spoken_items import SpokenItems
from sessions.voice.state import VoiceState


class Answers:
    def __init__(self, state: VoiceState, conversation: Conversation, spoken_items: SpokenItems) -> None:
        self._state = state
        self._conversation = conversation
        self._spoken_items = spoken_items
        self._live: Answer | None = None
        self._out_of_band: dict[str, Answer] = {}

    async def create(
        self,
        wish: CreateResponse,
        turn: SpokenTurn | None = None,
        unheard: RequestFailed | None = None,
        head_start: HeadStart | None = None,
    ) -> Answer:
        """Starts an answer; one that is being stopped gets its closing events out first.

        `unheard`: the turn could not be recognised, the answer fails with it. Raises CommandRefused.
        """
        plan = plan_answer(self._state, wish)
        clock = AnswerClock(self._state.clock, turn)
        if plan.conversation == "none":
            self._refuse_too_many()
        else:
            await self.silence()
            self._refuse_second()
        self._state.epoch += 1
        answer = Answer(self._state, self._conversation, plan, clock, head_start)
        if plan.conversation == "none":
            self._out_of_band[answer.id] = answer
        else:
            self._live = answer
        self._state.spawn(self._run(answer, unheard))
        return answer

    @property
    def has_floor(self) -> bool:
        """The agent is answering in the conversation, or what it has answered is still being played."""
        return self._running() is not None or self._state.playout.has_floor

    @property
    def busy(self) -> bool:
        """Something is being answered, or played."""
        return self.has_floor or bool(self._out_of_band)

    def said(self, item_id: str, start_ms: float, end_ms: float) -> str:
        """The words in this stretch of the item's sound, also while it is being written."""
        if self._live is not None and self._live.item.id == item_id:
            return self._live.said(start_ms, end_ms)
        entry = self._conversation.get(item_id)
        if entry is None or entry.spoken is None:
            return ""
        return entry.spoken.between(text_of(entry.written), start_ms, end_ms)

    def interrupt(self) -> tuple[Heard, ...]:
        """The user speaks: the live answer stops, and no answer of this conversation is played on. To be followed by `cut`."""
        live = self._running()
        if live is not None:
            self._stop(live, "turn_detected")
        return self.clear_playback()

    def abandon(self) -> tuple[Heard, ...]:
        """Nobody is there to hear: what is spoken stops; what is only written goes on. To be followed by `cut`."""
        live = self._running()
        for answer in (*([live] if live is not None else []), *self._out_of_band.values()):
            if answer.spoken:
                self._stop(answer, "client_cancelled")
        return self.clear_playback()

    def live(self) -> Answer | None:
        """The answer of the conversation that is not over yet."""
        return self._running()

    def clear_playback(self) -> tuple[Heard, ...]:
        """Falls silent. What has not been read of the answers' sound is taken back, also of an answer that is complete. The
        conversation remembers of these answers only what was heard."""
        self._take_back(lambda sound: not sound.out_of_band)
        cleared = self._state.playout.clear()
        return tuple(
            msgspec.structs.replace(heard, audio_ms=self._conversation.cut(heard.item_id, heard.audio_ms, heard.source))
            for heard in cleared
        )

    async def cut(self, cleared: tuple[Heard, ...]) -> None:
        """Tells what has become of them where the server's side plays; a client that plays for itself knows better."""
        for heard in cleared:
            if heard.source != "sent":
                continue
            await self._state.emit(PlaybackCleared(heard.response_id))
            if self._conversation.get(heard.item_id) is not None:
                await self._state.emit(ItemTruncated(heard.item_id, 0, heard.audio_ms))

    def cancel(self, response_id: str | None) -> None:
        """Harmless when nothing runs. Without an id the live answer is meant."""
        live = self._running()
        answer = live
        if response_id is not None and (live is None or live.id != response_id):
            answer = self._out_of_band.get(response_id)
        if answer is not None:
            self._stop(answer, "client_cancelled")

    def head_start(self, heard: str) -> HeadStart | None:
        """Begin to answer what the user has said so far; None when no answer could follow now."""
        if self._running() is not None:
            return None
        try:
            plan = plan_answer(self._state, CreateResponse())
        except CommandRefused:
            return None
        said = Item(id="", role="user", status="completed", parts=(InputAudio(heard, 0),))
        entries = [*self._conversation.entries, Entry(said)]
        return HeadStart(self._state, plan, messages_of(plan.instructions, entries, self._state.settings))

    async def silence(self) -> None:
        """Waits for the closing events of an answer that is being stopped."""
        live = self._running()
        if live is not None and live.stopping:
            await live.closed.wait()

    async def closed(self) -> None:
        """Waits for the closing events of all answers, which are being stopped."""
        for answer in (*([self._live] if self._live is not None else []), *self._out_of_band.values()):
            if answer.stopping:
                await answer.closed.wait()

    def _running(self) -> Answer | None:
        return None if self._live is None or self._live.closed.is_set() else self._live

    def _stop(self, answer: Answer, reason: StatusReason) -> None:
        self._state.epoch += 1
        answer.stop(reason)
        self._take_back(lambda sound: sound.response_id == answer.id)

    def _take_back(self, unwanted: Callable[[AudioDelta], bool]) -> None:
        """Sound that nobody has read yet will never be heard."""
        for sound in self._state.events.drop(unwanted):
            self._conversation.limit(sound.item_id, sound.pts_ms)

    def _refuse_second(self) -> None:
        live = self._running()
        if live is not None:
            message = f"response {live.id} is still in progress; cancel it or wait for response.done"
            raise CommandRefused("conversation_already_has_active_response", message)

    def _refuse_too_many(self) -> None:
        limit = self._state.settings.maximum_out_of_band
        if len(self._out_of_band) >= limit:
            message = f"conversation: expected at most {limit} responses out of band at a time, got one more"
            raise CommandRefused("too_many_responses", message, "response.conversation")

    async def _run(self, answer: Answer, unheard: RequestFailed | None) -> None:
        try:
            await answer.run(self._prompt, unheard)
        finally:
            self._out_of_band.pop(answer.id, None)

    async def _prompt(self, plan: AnswerPlan) -> tuple[Message, ...]:
        if plan.input is not None:
            return messages_of(plan.instructions, [Entry(item) for item in plan.input], self._state.settings)
        await self._spoken_items.settled()
        if plan.conversation == "auto" and plan.instructions == self._state.config.instructions:
            forget_what_left(plan.instructions, self._conversation.entries, self._state.settings)
        return messages_of(plan.instructions, self._conversation.entries, self._state.settings)
