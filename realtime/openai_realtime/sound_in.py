"""What a client appends, in the format of its session, as the sound that a session takes."""

from realtime.media import g711
from realtime.media.resampler import Resampler
from sessions.voice.audio_buffer import SAMPLE_RATE
from sessions.voice.commands import AppendAudio, ClearAudio, Command, CommitAudio
from sessions.voice.config import SoundFormat

BYTES_PER_S: dict[SoundFormat, int] = {"pcm": 2 * SAMPLE_RATE, "pcmu": g711.RATE_HZ, "pcma": g711.RATE_HZ}
OFF_LOOP_BYTES = 32 << 10
"""Of G.711: more is decoded in a thread. This much is four seconds, and takes 2 ms."""


class SoundIn:
    """One connection's. The sound is resampled as one stream, so it comes a little later than it was appended; a commit and a
    change of format bring the rest."""

    def __init__(self, format: SoundFormat) -> None:
        self._begin(format)

    @property
    def format(self) -> SoundFormat:
        return self._format

    def most_bytes(self, most_pcm_bytes: int) -> int:
        """How much of this format lasts as long as so much PCM."""
        return most_pcm_bytes * BYTES_PER_S[self._format] // BYTES_PER_S["pcm"]

    def is_long(self, command: Command) -> bool:
        """Whether decoding it would hold up the loop."""
        return self._format != "pcm" and isinstance(command, AppendAudio) and len(command.pcm) > OFF_LOOP_BYTES

    def decoded(self, command: Command) -> tuple[Command, ...]:
        """What the session is to do instead, in order."""
        match command:
            case AppendAudio(pcm=data):
                return (AppendAudio(self._pcm(data)),)
            case CommitAudio() if self._format != "pcm":
                return (*self._rest(), command)
            case ClearAudio():
                self._begin(self._format)
            case _:
                pass
        return (command,)

    def change(self, format: SoundFormat) -> tuple[Command, ...]:
        """What follows is in this format. Gives what is still to be appended of the one before, half a sample made whole."""
        rest = self._rest()
        self._begin(format)
        return rest

    def _begin(self, format: SoundFormat) -> None:
        self._format: SoundFormat = format
        self._resampler = Resampler(g711.RATE_HZ, SAMPLE_RATE)
        self._odd = False

    def _pcm(self, data: bytes) -> bytes:
        if self._format == "pcm":
            self._odd ^= len(data) % 2 == 1
            return data
        return self._resampler.resample(g711.decode(data, self._format))

    def _rest(self) -> tuple[Command, ...]:
        if self._format != "pcm":
            return (AppendAudio(self._resampler.finish()),)
        return (AppendAudio(b"\0"),) if self._odd else ()
