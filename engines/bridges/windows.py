"""Any edge that carries an array over time: it becomes windows, by a chunk schedule."""

import time
from collections.abc import Callable

import msgspec

from engines.bridges.held import refuse_too_much
from engines.parameters import Parameters
from engines.payloads import Array, Payload, Scalar
from engines.pipeline import BrokenStream
from engines.schedule import ChunkSchedule, Window, WindowCutter


class Windows(msgspec.Struct, frozen=True):
    """A BridgeFactory. `array` is the name of an array [..., time] of any type: frames, samples, token ids.

    The attribute `segment_end` is true in the last payload of each segment (clause); contexts do not cross from one to the
    next, and a stream that ends inside a segment is broken. Empty: the stream is one segment, and ends with its stage.
    """

    array: str
    schedule: ChunkSchedule
    segment_end: str = ""
    clock: Callable[[], float] = time.monotonic

    def __call__(self, parameters: Parameters) -> "WindowBridge":
        return WindowBridge(self)


class WindowBridge:
    """Payloads in: the array [..., time], of equal type and equal shape but for time. Other arrays and text stay behind.

    Out: the array [..., left + time + right] with the attributes `left` and `right` in units of time and all those of the segment
    so far, the newest of each name; `segment_end` is true in a segment's last window, which may be without units.
    """

    def __init__(self, record: Windows) -> None:
        self._record = record
        self._cutter = WindowCutter(record.schedule, record.clock)
        self._kind: tuple[str, tuple[int, ...]] | None = None
        """Type and shape without time."""
        self._attributes: dict[str, Scalar] = {}

    def feed(self, payload: Payload) -> list[Payload]:
        ends = payload.attributes.get(self._record.segment_end) is True
        self._attributes |= payload.attributes
        payloads = [self._payload(window) for window in self._windows(payload.arrays.get(self._record.array), ends)]
        if ends:
            self._attributes = {}
        return payloads

    def finish(self) -> list[Payload]:
        end = self._record.segment_end
        if end and self._cutter.inside_segment:
            raise BrokenStream(f"{self._record.array}: expected {end} true in the stream's last payload, it ended in mid-segment")
        return [self._payload(window) for window in self._cutter.end() if window.units]

    def _windows(self, array: Array | None, ends: bool) -> list[Window]:
        if array is None:
            return self._cutter.end() if ends else []
        self._check(array)
        windows = self._cutter.push(array.numpy(), segment_end=ends)
        refuse_too_much(self._record.array, self._cutter.held_bytes)
        return windows

    def _check(self, array: Array) -> None:
        """Raises BrokenStream."""
        kind = (array.dtype, array.shape[:-1])
        if array.shape and self._kind in (None, kind):
            self._kind = kind
            return
        dtype, shape = self._kind or (array.dtype, ("…",))
        expected = ", ".join([*map(str, shape), "time"])
        raise BrokenStream(f"{self._record.array}: expected {dtype} [{expected}], got {array.dtype} {list(array.shape)}")

    def _payload(self, window: Window) -> Payload:
        attributes = {**self._attributes, "left": window.left, "right": window.right}
        if end := self._record.segment_end:
            attributes[end] = window.final
        return Payload(arrays={self._record.array: Array.of(window.values)}, attributes=attributes)
