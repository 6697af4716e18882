"""Frames: however the stream is cut, the same messages; whatever is no frame of ours, one named error and nothing after it."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.connectors.contents import Inline
from engines.messages import to_worker
from engines.messages.framing import MAX_FRAME_BYTES, FrameCutter, FrameError, FrameTooLarge, frame
from engines.messages.to_worker import Abort, Grant, Hello, Probe, Push, ToWorker
from engines.payloads import Array, Payload

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
messages = st.one_of(
    st.builds(Hello, texts),
    st.builds(Abort, texts),
    st.builds(Grant, texts, texts, st.integers(0, 2**40)),
    st.builds(Push, texts, texts, texts, st.builds(Inline, st.builds(Payload, texts)), st.booleans()),
    st.just(Probe()),
)


def framed(message: ToWorker) -> bytes:
    return frame(to_worker.encoder.encode(message))


def is_a_message(body: bytes) -> bool:
    try:
        to_worker.decoder.decode(body)
    except ValueError:
        return False
    return True


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


def hear(parts: Iterable[bytes], messages: list[ToWorker]) -> None:
    cutter = FrameCutter(to_worker.decoder)
    for part in parts:
        cutter.feed(part)
        while (message := cutter.next()) is not None:
            messages.append(message)
    cutter.end()


def heard(parts: Iterable[bytes]) -> list[ToWorker]:
    messages: list[ToWorker] = []
    hear(parts, messages)
    return messages


@given(st.lists(messages, max_size=12), st.lists(st.integers(0, 4000), max_size=30))
def test_any_cuts_of_the_stream_give_the_same_messages(sent: list[ToWorker], places: list[int]) -> None:
    assert heard(cut(b"".join(framed(message) for message in sent), places)) == sent


@given(st.lists(messages, min_size=1, max_size=6))
def test_byte_by_byte_is_no_different(sent: list[ToWorker]) -> None:
    stream = b"".join(framed(message) for message in sent)
    assert heard(stream[place : place + 1] for place in range(len(stream))) == sent


@given(st.lists(messages, max_size=5), st.binary(max_size=80).filter(lambda body: not is_a_message(body)), st.data())
def test_what_is_no_message_is_an_error_after_all_before_it(good: list[ToWorker], bad: bytes, data: st.DataObject) -> None:
    stream = b"".join(framed(message) for message in good) + frame(bad) + framed(Hello("too late"))
    parts, messages = cut(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=5))), list[ToWorker]()
    with pytest.raises(FrameError, match="no message of ours"):
        hear(parts, messages)
    assert messages == good


@given(st.lists(messages, min_size=1, max_size=4), st.data())
def test_a_stream_that_ends_inside_a_frame_says_so(sent: list[ToWorker], data: st.DataObject) -> None:
    whole = [framed(message) for message in sent]
    stream = b"".join(whole)
    end = data.draw(st.integers(0, len(stream)))
    if end in {sum(map(len, whole[:count])) for count in range(len(whole) + 1)}:
        heard([stream[:end]])
        return
    with pytest.raises(FrameError, match="connection cut inside a frame"):
        heard([stream[:end]])


def test_a_length_beyond_the_limit_is_refused_before_its_bytes_come() -> None:
    cutter = FrameCutter(to_worker.decoder)
    cutter.feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(FrameError, match=f"frame of {MAX_FRAME_BYTES + 1} bytes, at most {MAX_FRAME_BYTES}"):
        cutter.next()


def test_nesting_without_end_is_no_message() -> None:
    cutter = FrameCutter(to_worker.decoder)
    cutter.feed(frame(b"\x82\xa4type\xa5abort\xa1x" + b"\x91" * 100_000))
    with pytest.raises(FrameError, match="no message of ours"):
        cutter.next()


def test_what_fits_no_frame_is_not_framed() -> None:
    frame(bytes(MAX_FRAME_BYTES))
    with pytest.raises(FrameTooLarge, match=str(MAX_FRAME_BYTES + 1)):
        frame(bytes(MAX_FRAME_BYTES + 1))


def push(values: np.ndarray) -> Push:
    return Push("r", "s", "", Inline(Payload(arrays={"x": Array.of(values)})), final=False)


def test_the_largest_frame_in_the_smallest_parts_is_linear() -> None:
    """Were the rest copied at each part, these 8,000 would take minutes and not 0.1 s."""
    values = np.arange((MAX_FRAME_BYTES - 4096) // 8)
    stream = framed(push(values))
    (message,) = heard(stream[place : place + 4096] for place in range(0, len(stream), 4096))
    assert isinstance(message, Push)
    assert isinstance(message.content, Inline)
    assert np.array_equal(message.content.payload.arrays["x"].numpy(), values)


@pytest.mark.parametrize("part", [1 << 20, 100])
def test_arrays_can_only_be_read_and_hold_no_bytes_of_other_frames(part: int) -> None:
    stream = b"".join(framed(push(np.full(1000, number, np.uint8))) for number in range(50))
    for number, message in enumerate(heard(stream[place : place + part] for place in range(0, len(stream), part))):
        assert isinstance(message, Push)
        assert isinstance(message.content, Inline)
        array = message.content.payload.arrays["x"]
        assert (array.numpy() == number).all()
        assert array.data.readonly
        assert memoryview(array.data.obj).nbytes < 1200
