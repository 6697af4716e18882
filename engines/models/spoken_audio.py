"""One request's speech on its way out: joined, resampled, as PCM16 with the media time of each chunk."""

from collections.abc import Mapping

from engines.models import Produced
from engines.models.joints import ClauseJoints
from engines.models.snapshots import Snapshot, saved
from engines.payloads import Payload, Scalar, audio
from engines.resampling import Quality, Samples, StreamResampler, to_pcm

PASSED_ON = ("clause", "written_end", "clause_final", "decoded")
KIND = "spoken_audio 1"
LAST = "last."
"""Before the names of the newest chunk's attributes, in a snapshot."""


class SpokenAudio:
    """From a voice's `source_rate` to the `rate` that the request wants, both in Hz."""

    def __init__(self, source_rate: int, rate: int) -> None:
        self._rate = rate
        # Low quality lags 1 ms and not 42: what is emitted of a clause is all of it, not all but its end.
        self._resampler = None if source_rate == rate else StreamResampler(source_rate, rate, Quality.LOW)
        self._joints = ClauseJoints(source_rate)
        self._emitted = 0
        self._attributes: dict[str, Scalar] = {}

    def reset(self) -> None:
        self._joints.reset()
        self._emitted, self._attributes = 0, {}
        if self._resampler is not None:
            self._resampler.reset()

    def snapshot(self) -> Payload:
        last = {LAST + name: value for name, value in self._attributes.items()}
        joints = {"before_onset": self._joints.before_onset, "quiet": self._joints.quiet}
        return saved(KIND, {}, self._resampler, emitted=self._emitted, **joints, **last)

    def restore(self, snapshot: Payload) -> None:
        """Go on where the snapshot was taken. Raises InvalidInput."""
        known = Snapshot(KIND, snapshot)
        self._joints.before_onset, self._joints.quiet = known.flag("before_onset"), known.count("quiet")
        self._emitted = known.count("emitted")
        self._attributes = known.group(LAST)
        known.resume(self._resampler)

    def chunk(self, samples: Samples, pause_ms: int | None, attributes: Mapping[str, Scalar], units: int) -> Produced:
        """A piece of a clause, the last one with the pause that follows it. `attributes`: those named in PASSED_ON ride on it."""
        self._attributes = {name: attributes[name] for name in PASSED_ON if name in attributes}
        joined = self._joints.join(samples, pause_ms)
        return self._produced(joined if self._resampler is None else self._resampler.push(joined), units)

    def rest(self) -> list[Produced]:
        """What the resampler still holds when all clauses have been spoken."""
        rest = None if self._resampler is None else self._resampler.flush()
        if rest is None or not len(rest):
            return []
        self._attributes.pop("decoded", None)
        return [self._produced(rest, units=0)]

    def _produced(self, samples: Samples, units: int) -> Produced:
        sound = audio(to_pcm(samples).tobytes(), self._rate)
        pts = self._emitted / self._rate
        self._emitted += len(samples)
        return Produced(Payload(arrays=sound.arrays, attributes={**sound.attributes, **self._attributes}), pts, units)
