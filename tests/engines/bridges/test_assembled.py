import numpy as np
import pytest

from engines.bridges.assembled import Assembled
from engines.bridges.held import MOST_HELD_BYTES
from engines.parameters import Picture
from engines.payloads import Array, Payload
from engines.pipeline import BrokenStream


def piece(name: str, data: bytes | bytearray, text: str = "", **attributes: int) -> Payload:
    return Payload(text, {name: Array.of(np.frombuffer(data, np.uint8))}, dict(attributes))


def test_pieces_become_one_input() -> None:
    bridge = Assembled(Picture())
    for payload in (piece("image", b"ab", "a cat", n=1), piece("mask", b"m"), piece("image", b"c", n=2)):
        assert bridge.feed(payload) == []
    [whole] = bridge.finish()
    assert (whole.text, whole.attributes) == ("a cat", {"n": 2})
    assert {name: bytes(array.data) for name, array in whole.arrays.items()} == {"image": b"abc", "mask": b"m"}


def test_nothing_is_no_input() -> None:
    assert Assembled(Picture()).finish() == []


def test_nothing_is_kept_of_the_senders_memory() -> None:
    memory = bytearray(b"abc")
    bridge = Assembled(Picture())
    bridge.feed(piece("image", memory))
    memory[:] = b"xyz"
    assert bytes(bridge.finish()[0].arrays["image"].data) == b"abc"


def test_too_much_is_refused() -> None:
    bridge = Assembled(Picture())
    half = piece("image", bytes(MOST_HELD_BYTES // 2))
    bridge.feed(half)
    bridge.feed(half)
    with pytest.raises(BrokenStream, match="files: expected at most"):
        bridge.feed(piece("image", b"x"))
