"""The sound of answers in the format that their client wants."""

import msgspec

from realtime.media import g711
from realtime.media.resampler import Resampler
from sessions.voice.audio_buffer import SAMPLE_RATE
from sessions.voice.events import AudioDelta, AudioDone, Event, ResponseDone


class SoundOut:
    """One connection's. Each answer is resampled as one stream, so its sound comes a little later; its end brings the rest,
    unless it was stopped."""

    def __init__(self) -> None:
        self._voices: dict[str, _Voice] = {}

    def encoded(self, event: Event) -> tuple[Event, ...]:
        """The events to tell instead, in order: the bytes of their sound are of the answer's format."""
        match event:
            case AudioDelta() if event.wanted != "pcm":
                if event.response_id not in self._voices:
                    self._voices[event.response_id] = _Voice(event.wanted)
                return _sounding(event, self._voices[event.response_id].encode(event.pcm))
            case AudioDone(response_id, item_id, stopped=False) if response_id in self._voices:
                voice = self._voices[response_id]
                return (*_sounding(AudioDelta(response_id, item_id, b"", voice.made_ms), voice.finish()), event)
            case ResponseDone(response):
                self._voices.pop(response.id, None)
            case _:
                pass
        return (event,)


class _Voice:
    def __init__(self, law: g711.Law) -> None:
        self._law: g711.Law = law
        self._resampler = Resampler(SAMPLE_RATE, g711.RATE_HZ)
        self._samples = 0

    @property
    def made_ms(self) -> float:
        return self._samples * 1000 / g711.RATE_HZ

    def encode(self, pcm: bytes) -> bytes:
        return self._coded(self._resampler.resample(pcm))

    def finish(self) -> bytes:
        return self._coded(self._resampler.finish())

    def _coded(self, pcm: bytes) -> bytes:
        self._samples += len(pcm) // 2
        return g711.encode(pcm, self._law)


def _sounding(event: AudioDelta, sound: bytes) -> tuple[AudioDelta, ...]:
    return (msgspec.structs.replace(event, pcm=sound),) if sound else ()
