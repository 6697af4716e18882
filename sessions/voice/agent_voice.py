"""What of the sound in the microphone is the agent's own."""

from sessions.voice.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.voice.echo import (
    AUDIBLE_DB,
    COMPARED_MS,
    COMPARED_SLOTS,
    LEAST_SLOTS,
    QUIET_DB,
    SLOT_MS,
    Echo,
    find_echo,
    slot_levels,
)
from sessions.voice.playout import SILENT_DB, Playing
from sessions.voice.state import VoiceState

REMEMBERED_MS = 10_000
"""While the user speaks no echo can be found; its way is still the one found before. An echo canceller changes it."""
LATE_MS = 1_500
"""So much later than reckoned may a client play what it was given, and the microphone hear it."""
EARLY_MS = 800
"""The word that sounds, and the next one: where a word sounds is known within one."""
UNHEARD_DB = 40.0
"""So much below the agent the microphone hears nothing of it. The faintest echoes of the set of `bench turns` are at −30 dB."""
UNHEARD_WINDOWS = 32
"""One second: longer than an echo takes to come back."""


class AgentVoice:
    """Is told of every window of the microphone in turn, by the sample where it ends."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer) -> None:
        self._state = state
        self._buffer = buffer
        self._began_at: int | None = None
        self._end = 0
        self._echo: Echo | None = None
        self._found_at = 0
        self._was_echo = False
        self._unheard = 0
        self._playing: Playing | None = None
        self._playing_at = 0

    @property
    def is_known(self) -> bool:
        """Whether its loudness is known, and so its echo, and enough was heard to find that."""
        enough = self._end - self._buffer.start >= LEAST_SLOTS * SLOT_MS * SAMPLES_PER_MS
        return enough and self._state.settings.echo_guard and len(self._state.playout.levels()) > 0

    @property
    def sounding_ms(self) -> int | None:
        """How long it has been heard without a break; None when it is not."""
        return None if self._began_at is None else (self._end - self._began_at) // SAMPLES_PER_MS

    def remains_ms(self) -> float:
        """How much it has to say yet that is known of."""
        playing = self._state.playout.playing()
        return 0.0 if playing is None else playing.remaining_ms

    def sounded(self, since: int) -> tuple[str, float, float]:
        """What may have come back into the microphone since this sample: item, and from where to where in its sound."""
        if self._playing is None:
            return "", 0.0, 0.0
        before_ms = (self._playing_at - since) / SAMPLES_PER_MS + LATE_MS
        return self._playing.item_id, self._playing.audio_ms - before_ms, self._playing.audio_ms + EARLY_MS

    def window(self, end: int, microphone_db: float) -> None:
        """`microphone_db`: the level of the window."""
        self._end = end
        self._listen_for_echo(microphone_db)
        if (playing := self._state.playout.playing()) is not None:
            self._playing, self._playing_at = playing, end
        if not self._state.playout.has_floor:
            self._began_at = None
        elif self._began_at is None:
            self._began_at = end

    def forget(self) -> None:
        """What is heard from now on may come another way, or from another room."""
        self._echo = None
        self._was_echo = False
        self._unheard = 0

    def is_all(self) -> bool:
        """Whether the last window holds nothing but its echo. To be asked of those that sound like speech. The first one that an
        echo does not explain still counts as one: a flutter would make the agent stutter."""
        if not self._state.settings.echo_guard:
            return False
        was, self._was_echo = self._was_echo, self._is_echo()
        return was or self._was_echo

    def _is_echo(self) -> bool:
        played = list(self._state.playout.levels())
        if not played:
            return False
        pcm = self._buffer.between(self._end - COMPARED_MS * SAMPLES_PER_MS, self._end)
        heard = slot_levels(pcm, SLOT_MS * SAMPLES_PER_MS)
        if not len(heard):
            return False
        found = find_echo(heard, played)
        if found is not None and found.is_sure:
            self._echo, self._found_at, self._unheard = found, self._end, 0
        elif self._unheard >= UNHEARD_WINDOWS:
            found = None
        if self._echo is not None and self._end - self._found_at <= REMEMBERED_MS * SAMPLES_PER_MS:
            found = self._echo
        return found is not None and found.explains(heard, played)

    def _listen_for_echo(self, microphone_db: float) -> None:
        """Where the agent has spoken for a while and the microphone was silent, it is not fed back: what begins soon after the
        agent is no echo then. Known until an echo is found."""
        if self._unheard >= UNHEARD_WINDOWS:
            return
        loudest_db = max(list(self._state.playout.levels())[-COMPARED_SLOTS:], default=QUIET_DB)
        if loudest_db > AUDIBLE_DB:
            is_silent = SILENT_DB < microphone_db <= loudest_db - UNHEARD_DB  # one that is muted tells nothing
            self._unheard = self._unheard + 1 if is_silent else 0
