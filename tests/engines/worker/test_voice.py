"""What a stage may have out, in chunks and in bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engines.chunks import Chunk, ChunkTiming
from engines.messages.to_worker import ServiceClass, Submit
from engines.parameters import Activity
from engines.payloads import Array, Payload
from engines.worker.voice import Product, Voice
from fakes.remote_payloads import RemotePayloads

SCOPE = "gateway#0/r/7/echo"
TIMING = ChunkTiming(0.0, 0.0)


def submit(window: int, window_bytes: int) -> Submit:
    return Submit("r", "test", "echo", (), 7, 3, "session", ServiceClass.INTERACTIVE, Activity(), window, window_bytes, 0.0)


def blob(nbytes: int, *, final: bool = False) -> Product:
    return Product(Payload(arrays={"blob": Array.of(np.zeros(nbytes, np.uint8))}), 0.0, final, TIMING)


class Heard:
    def __init__(self, window: int = 64, window_bytes: int = 1 << 20) -> None:
        self.chunks: list[Chunk] = []
        self.remote = RemotePayloads()
        self.voice = Voice(submit(window, window_bytes), "echo", SCOPE, self.remote, self.chunks.append)

    @property
    def seqs(self) -> list[int]:
        return [chunk.seq for chunk in self.chunks]

    @property
    def kept(self) -> list[int]:
        return [seq for _, seq in self.remote.kept]


async def test_the_chunk_that_crosses_the_bytes_is_said_and_the_next_waits() -> None:
    heard = Heard(window_bytes=100)
    for nbytes in (60, 60, 1):
        heard.voice.add(blob(nbytes))
    assert not heard.voice.speak()
    assert heard.seqs == [0, 1]
    assert not heard.voice.may_emit
    heard.voice.grant(1)
    assert not heard.voice.speak()
    assert heard.seqs == [0, 1, 2]
    assert heard.kept == [1, 2]


async def test_what_is_not_granted_is_kept_beyond_the_final_chunk() -> None:
    heard = Heard()
    heard.voice.add(blob(1))
    heard.voice.add(blob(1, final=True))
    assert heard.voice.speak()
    heard.voice.grant(1)
    assert heard.voice.holds_payloads
    heard.voice.grant(1)
    assert not heard.voice.holds_payloads
    assert heard.kept == []


async def test_to_forget_is_to_keep_nothing_and_to_say_nothing_more() -> None:
    heard = Heard(window=1)
    heard.voice.add(blob(1))
    heard.voice.add(blob(1))
    heard.voice.speak()
    heard.voice.forget()
    heard.voice.grant(9)
    assert not heard.voice.speak()
    assert (heard.seqs, heard.kept, heard.voice.holds_payloads) == ([0], [], False)


@given(
    st.integers(1, 5),
    st.integers(1, 100),
    st.lists(st.one_of(st.integers(0, 60), st.integers(1, 3).map(lambda count: -count)), max_size=40),
)
def test_it_never_has_more_out_than_its_windows_and_one_chunk(window: int, window_bytes: int, events: list[int]) -> None:
    """Not negative: so many bytes are produced; negative: so many chunks are granted, of those that are out."""
    heard, granted, produced = Heard(window, window_bytes), 0, 0
    for event in events:
        if event >= 0:
            heard.voice.add(blob(event))
            produced += 1
        else:
            count = min(-event, len(heard.chunks) - granted)
            heard.voice.grant(count)
            granted += count
        heard.voice.speak()
        out = [chunk.content.nbytes for chunk in heard.chunks[granted:]]
        assert len(out) <= window
        assert sum(out[:-1]) < window_bytes
        assert heard.kept == list(range(granted, len(heard.chunks)))
        stuck = len(heard.chunks) < produced
        assert not stuck or len(out) == window or sum(out) >= window_bytes
    assert heard.seqs == list(range(len(heard.chunks)))
