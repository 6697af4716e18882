"""A conversation by voice and text, free of any transport."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TypeVar

import msgspec

from engines.messages.to_gateway import ErrorKind
from engines.requests import Graph, RequestFailed
from sessions.store.records import Entry
from sessions.usage import UsageMeter
from sessions.voice.answer_plan import speaking_output
from sessions.voice.answers import Answers
from sessions.voice.client_playout import ClientPlayout
from sessions.voice.commands import (
    AcknowledgePlayback,
    AppendAudio,
    CancelResponse,
    ClearAudio,
    ClearPlayback,
    Command,
    CommandRefused,
    CommitAudio,
    Configure,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from sessions.voice.config import VoiceConfig
from sessions.voice.conversation import Conversation, Sound
from sessions.voice.event_queue import GROUP
from sessions.voice.events import (
    AnswerForgone,
    AudioDelta,
    Configured,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    Opened,
    Overtaken,
    PlaybackCleared,
    Reopened,
    Resumed,
    SessionError,
)
from sessions.voice.items import PARTS_OF_ROLE, InputAudio, Item, kind_of
from sessions.voice.playout import Heard, Player, Playout
from sessions.voice.restoring import LOST, Due, Restored
from sessions.voice.settings import VoiceSettings
from sessions.voice.snapshot import VoiceSnapshot
from sessions.voice.spoken_input import SpokenInput
from sessions.voice.spoken_items import SpokenItems
from sessions.voice.state import VoiceState
from sessions.voice.unfinished import UnfinishedAnswers

T = TypeVar("T")


class VoiceSession:
    """`async with session:` runs it; `handle` takes commands and `events` gives events, each from a task of its own.

    `voices` maps a voice's name to the graph's output that speaks with it. `clock` gives monotonic seconds, `ids` a new
    id for a prefix; `playout` plays the answers' audio, None: the client does. `restored`: it goes on with this conversation.
    Leaving the block ends every request and task of the session; the events end too. A session outlives its transport: it is
    told when that has gone (`detach`), and when another one comes (`attach`).
    """

    def __init__(
        self,
        graph: Graph,
        config: VoiceConfig,
        settings: VoiceSettings,
        voices: Mapping[str, str],
        session_id: str,
        fence: int,
        clock: Callable[[], float],
        ids: Callable[[str], str],
        playout: Playout | None = None,
        restored: Restored | None = None,
    ) -> None:
        playout = playout or ClientPlayout(clock)
        self._state = VoiceState(graph, config, settings, voices, session_id, fence, clock, ids, playout)
        self._conversation = Conversation(settings.maximum_items)
        self._beginning: tuple[Event, ...] = (Opened(config),)
        self._silenced: str | None = None
        self._due: Due | None = None
        if restored is not None:
            self._state.epoch = restored.epoch
            self._state.usage = UsageMeter(restored.usage)
            self._conversation.restore(restored.entries)
            self._beginning = tuple(restored.events)
            self._silenced = restored.unfinished.spoken
            self._due = restored.due
        spoken_items = SpokenItems(self._state, self._conversation)
        self._answers = Answers(self._state, self._conversation, spoken_items)
        self._input = SpokenInput(self._state, spoken_items, self._answers)
        self._attended = True

    @property
    def config(self) -> VoiceConfig:
        return self._state.config

    @property
    def sound(self) -> Sound:
        """Of its answers. What was heard may still change while it runs."""
        return self._conversation.sound

    @property
    def usage(self) -> UsageMeter:
        return self._state.usage

    @property
    def emitted(self) -> int:
        """Events until now, but for sound."""
        return self._state.events.came

    @property
    def taken(self) -> int:
        """How many of those that were `emitted` somebody has taken."""
        return self._state.events.taken

    @property
    def ended(self) -> bool:
        return self._state.events.closed

    @property
    def is_between_turns(self) -> bool:
        """Nobody is saying anything, and nothing that was said waits for an answer."""
        return not (self._answers.busy or self._input.in_turn)

    async def __aenter__(self) -> "VoiceSession":
        await self._state.open()
        await self._state.emit(*self._beginning)
        await self._input.configured()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._state.close(raised)
        self._answers.clear_playback()

    async def events(self) -> AsyncIterator[Event]:
        """For one reader, until the transport has gone. While it does not read, nothing but its own session waits."""
        async for group in self._state.events.read(1):
            for event in group:
                if not isinstance(event, Overtaken):
                    yield event

    def groups(self) -> AsyncIterator[tuple[Event, ...]]:
        """The same, as much at a time as there is; sound comes alone. Whoever takes them answers for them, but for sound that it
        has not come back from: the reader after it gets that first."""
        return self._state.events.read(GROUP)

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """A task that ends with the session at the latest. An exception of it ends the session."""
        return self._state.spawn(work)

    def detach(self) -> None:
        """The transport is gone. The session hears nothing; an answer waits to be heard on, until somebody gives it up."""
        if not self._attended:
            return
        self._attended = False
        self._state.events.pause()
        self._state.spawn(self._input.left())
        self._state.playout.detach()

    def stop_reading(self) -> None:
        """Whoever reads the events gets no more of them."""
        self._state.events.pause()

    def say_no_more(self) -> None:
        """The events end after those that there are."""
        self._state.events.close()

    async def tell(self, event: Event) -> None:
        """What is not of the session's own making."""
        await self._state.emit(event)

    def give_up(self) -> None:
        """Nobody hears what is being said. It stops, and the conversation remembers what was heard of it."""
        self._state.spawn(self._forgo(self._answers.abandon(), was_owed=self._input.forget_answer()))

    async def _forgo(self, cleared: tuple[Heard, ...], *, was_owed: bool) -> None:
        if was_owed:
            await self._state.emit(AnswerForgone())
        await self._answers.cut(cleared)

    async def fall_silent(self) -> None:
        """As `give_up`, but an answer that has not begun is owed on: whoever goes on with the session begins it. Returns when all
        has been emitted about what was being said."""
        self._input.forget_answer()
        self._state.spawn(self._answers.cut(self._answers.abandon()))
        await self._answers.closed()
        await self._input.settled()

    def attach(self, fence: int, play: Player | None, resumed: Resumed | None = None, untold: tuple[Entry, ...] = ()) -> None:
        """Another transport has come, in place of one that has gone or that it supersedes. `events` then begin with `resumed`,
        and all goes on as if nothing had happened; or with Reopened, which has `untold` with it."""
        self.detach()
        self._state.events.pause()
        self._state.fence = fence
        before = self._state.playout
        playout = self._client_plays(before) if play is None else play(before, self._state.spawn)
        if playout is not before or (resumed is None and isinstance(playout, ClientPlayout)):
            self.give_up()
        if isinstance(playout, ClientPlayout):
            playout.attach()
        self._state.playout = playout
        self._attended = True
        self._state.events.begin_with(resumed or self._reopened(untold), is_snapshot=resumed is None)
        self._state.spawn(self._input.configured())
        if self._silenced is not None and play is not None:
            self._state.spawn(self._state.emit(PlaybackCleared(self._silenced)))  # another node played it, or had done so
            self._silenced = None
        due, self._due = self._due, None
        if due is not None:
            self._state.spawn(self._answer(due))

    async def _answer(self, due: Due) -> None:
        """What another node was to answer, and had not begun to."""
        unheard = RequestFailed(ErrorKind.REPLICA_LOST, "asr", LOST) if due.words_lost else None
        try:
            await self._answers.create(CreateResponse(), None, unheard)
        except CommandRefused as refused:
            await self._state.emit(SessionError(refused.code, refused.message), AnswerForgone())

    def _client_plays(self, before: Playout) -> Playout:
        return before if isinstance(before, ClientPlayout) else ClientPlayout(self._state.clock)

    def _reopened(self, untold: tuple[Entry, ...]) -> Reopened:
        live = self._answers.live()
        said = {live.item.id: live.item} if live is not None and not live.stopping else {}
        items = tuple(said.get(entry.item.id, entry.item) for entry in self._conversation.entries)
        return Reopened(self._state.config, items, None if live is None else live.id, untold)

    def snapshot(self, told: UnfinishedAnswers, wire: bytes) -> VoiceSnapshot:
        """As it is now. `told`: answers as the client knows them; `wire`: what the edge wants kept."""
        return VoiceSnapshot(
            config=self._state.config,
            entries=tuple(self._conversation.entries),
            epoch=self._state.epoch,
            unfinished=told.answers,
            spoken=told.spoken,
            owed=told.owed,
            wire=wire,
        )

    def giving(self, event: Event) -> AbstractContextManager[None]:
        """Around the sending of an event to the client: a client that plays for itself is then taken to play its sound."""
        playout = self._state.playout
        if isinstance(playout, ClientPlayout) and isinstance(event, AudioDelta):
            return playout.giving(event)
        return nullcontext()

    async def handle(self, command: Command) -> None:
        """Returns when what it brings about at once has been emitted. Raises CommandRefused; the session goes on."""
        match command:
            case AppendAudio(pcm=pcm):
                self._input.append(pcm)
                self._state.usage.hear(pcm)
            case CommitAudio():
                await self._input.commit()
            case ClearAudio():
                await self._input.clear()
            case CreateResponse():
                answer = await self._answers.create(command)
                await answer.begun.wait()
            case CancelResponse(response_id=response_id):
                self._answers.cancel(response_id)
            case ClearPlayback():
                self._answers.cancel(None)
                await self._answers.cut(self._answers.clear_playback())
            case AcknowledgePlayback():
                self._acknowledge(command)
            case Configure(config=config):
                await self._configure(config)
            case CreateItem() | DeleteItem() | RetrieveItem() | TruncateItem():
                await self._handle_item(command)

    def _acknowledge(self, played: AcknowledgePlayback) -> None:
        playout = self._state.playout
        if not isinstance(playout, ClientPlayout):
            raise CommandRefused("unsupported", "type: expected no such event, as the server plays the answers", "type")
        if played.content_index != 0:
            message = f"content_index: expected 0, got {played.content_index}"
            raise CommandRefused("playback_invalid_index", message, "content_index")
        heard_ms = playout.acknowledge(played.item_id, played.audio_ms)
        if heard_ms is None:
            message = f"item_id: expected an item whose sound has been sent, got {played.item_id!r}"
            raise CommandRefused("playback_invalid_item_id", message, "item_id")
        self._conversation.correct(played.item_id, heard_ms)

    async def _configure(self, config: VoiceConfig) -> None:
        if config.modality == "audio":
            speaking_output(self._state.graph, self._state.voices, config.voice)
        await self._input.configure(config)
        await self._state.emit(Configured(config))

    async def _handle_item(self, command: CreateItem | DeleteItem | RetrieveItem | TruncateItem) -> None:
        match command:
            case CreateItem(item=item, previous_item_id=previous_item_id):
                _check(item)
                item = msgspec.structs.replace(item, id=item.id or self._state.ids("item"), status="completed")
                previous = self._conversation.create(item, previous_item_id)
                await self._state.emit(ItemAdded(item, previous), ItemDone(item, previous))
            case DeleteItem(item_id=item_id):
                self._conversation.delete(item_id)
                await self._state.emit(ItemDeleted(item_id))
            case RetrieveItem(item_id=item_id):
                await self._state.emit(ItemRetrieved(self._conversation.retrieve(item_id)))
            case TruncateItem(item_id=item_id, content_index=content_index, audio_end_ms=audio_end_ms):
                heard_ms = self._conversation.truncate(item_id, content_index, audio_end_ms)
                if isinstance(self._state.playout, ClientPlayout):
                    self._state.playout.truncate(item_id)
                await self._state.emit(ItemTruncated(item_id, content_index, heard_ms))


def _check(item: Item) -> None:
    allowed = PARTS_OF_ROLE[item.role]
    for place, part in enumerate(item.parts):
        got = kind_of(part)
        if got not in allowed:
            field = f"item.content[{place}].type"
            message = f"{field}: expected {' or '.join(allowed)} for the role {item.role}, got {got}"
            raise CommandRefused("invalid_value", message, field)
        if isinstance(part, InputAudio) and part.transcript is None:
            field = f"item.content[{place}].transcript"
            message = f"{field}: expected the transcript of the audio, got none; send speech through the input audio buffer"
            raise CommandRefused("invalid_value", message, field)
