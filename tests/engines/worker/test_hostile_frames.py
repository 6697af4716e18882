"""Peers whose bytes are wrong, in the middle of other gateways' traffic: they are dropped, and nobody else notices."""

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.connectors.contents import Inline
from engines.messages import to_worker
from engines.messages.framing import MAX_FRAME_BYTES, frame
from engines.messages.to_worker import Abort, Grant, Hello, Probe, Push, ServiceClass, Submit, ToWorker
from engines.parameters import Activity
from engines.payloads import Payload, audio
from fakes.gateway import payload
from fakes.worker_bench import Bench


def submission(name: str, stage: str = "echo") -> Submit:
    who = (7, 3, "session", ServiceClass.INTERACTIVE, Activity())
    return Submit(name, "test", stage, (), *who, 64, 1 << 20, 10.0, "shared_memory")


TRAFFIC: tuple[ToWorker, ...] = (
    Hello("hostile"),
    submission("same"),
    Push("same", "echo", "", Inline(audio(bytes(64), 16_000)), False),
    Push("same", "echo", "", Inline(Payload("hostile")), True),
    Grant("same", "echo", 1),
    submission("r2", "joined"),
    Probe(),
    Abort("same"),
)
VALID = b"".join(frame(to_worker.encoder.encode(message)) for message in TRAFFIC)


async def unharmed(bench: Bench, *hostile: bytes) -> None:
    """A gateway is in the middle of a stream while others send this; its own goes on, and afterwards all slots are free."""
    bench.slots = 4
    good = await bench.gateway("good")
    good.submit("same")
    good.push("same", "before")
    assert payload(await good.chunk("same")).text == "before"
    for data in hostile:
        stranger = await bench.stranger()
        stranger.writer.write(data)
        await stranger.close()
    good.push("same", "after", final=True)
    assert await good.texts("same") == ["after", ""]
    await good.idle()
    await bench.stop()


@given(st.lists(st.tuples(st.integers(0, len(VALID) * 8 - 1), st.integers(1, 3)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_flipped_bits(flips: list[tuple[int, int]]) -> None:
    damaged: list[bytes] = []
    for bit, count in flips:
        data = bytearray(VALID)
        for step in range(count):
            at = (bit + step * 977) % (len(VALID) * 8)
            data[at // 8] ^= 1 << (at % 8)
        damaged.append(bytes(data))
    alone(*damaged)


@given(st.integers(0, len(VALID) - 1), st.binary(max_size=64))
@settings(deadline=None, max_examples=60)
def test_frames_that_are_cut_and_go_on_as_something_else(cut: int, rest: bytes) -> None:
    alone(VALID[:cut], VALID[:cut] + rest)


@given(st.binary(min_size=1, max_size=256), st.booleans())
@settings(deadline=None, max_examples=60)
def test_random_bytes_in_a_frame_or_not(data: bytes, framed: bool) -> None:
    greeting = frame(to_worker.encoder.encode(TRAFFIC[0]))
    alone(greeting + (frame(data) if framed else data))


def alone(*hostile: bytes) -> None:
    async def check(folder: Path) -> None:
        await unharmed(Bench(folder), *hostile)

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
            f"frame of {MAX_FRAME_BYTES + 1} bytes, at most {MAX_FRAME_BYTES} are allowed",
        ),
        (VALID[:-1], "connection cut inside a frame"),
        (VALID + frame(b"\x00"), "frame that is no message of ours"),
        (frame(to_worker.encoder.encode(Hello("a/b"))), "expected a name without # and /"),
        (VALID + frame(to_worker.encoder.encode(Grant("same", "echo", -1))), "expected count ≥ 0, got -1"),
    ],
)
async def test_it_is_logged(bench: Bench, caplog: pytest.LogCaptureFixture, data: bytes, told: str) -> None:
    caplog.set_level(logging.WARNING)
    stranger = await bench.stranger()
    stranger.writer.write(data)
    stranger.writer.write_eof()
    await stranger.hung_up()
    await (await bench.gateway()).idle()
    assert [told in record.message for record in caplog.records] == [True]
