import numpy as np
import pytest

from engines.models import InvalidInput
from engines.models.snapshots import Snapshot, saved
from engines.payloads import Array, Payload
from engines.resampling import StreamResampler


def test_what_is_saved_is_read_again():
    snapshot = Snapshot("fake 1", saved("fake 1", {"sums": np.arange(3, dtype=np.float32)}, count=3, ended=True, mean=0.5))
    assert list(snapshot.floats("sums", (None,))) == [0, 1, 2]
    assert (snapshot.count("count"), snapshot.flag("ended"), snapshot.number("mean")) == (3, True, 0.5)


def test_it_does_not_change_with_what_was_saved():
    sums = np.zeros(2, np.float32)
    payload = saved("fake 1", {"sums": sums})
    sums += 1
    assert not Snapshot("fake 1", payload).floats("sums", (2,)).any()


def test_another_kind_or_version_is_refused():
    with pytest.raises(InvalidInput, match="snapshot: expected 'fake 2', got 'fake 1'"):
        Snapshot("fake 2", saved("fake 1"))


@pytest.mark.parametrize("value", [-1, 1.0, True, "1"])
def test_counts_are_whole_and_not_negative(value: float | str):
    with pytest.raises(InvalidInput, match=r"snapshot\.count: expected a whole number from 0 on, got"):
        Snapshot("fake 1", saved("fake 1", count=value)).count("count")


@pytest.mark.parametrize("value", [float("nan"), 1, "0.5"])
def test_numbers_are_finite(value: float | str):
    with pytest.raises(InvalidInput, match=r"snapshot\.mean: expected a finite number, got"):
        Snapshot("fake 1", saved("fake 1", mean=value)).number("mean")


def test_an_array_that_lacks_bytes_is_refused():
    short = Payload(arrays={"sums": Array("float32", (5,), memoryview(bytes(8)))}, attributes={"snapshot": "fake 1"})
    with pytest.raises(InvalidInput, match=r"snapshot\.sums: expected float32 of shape .*5.* in 8 bytes"):
        Snapshot("fake 1", short).floats("sums", (None,))


def test_a_resampler_that_cannot_have_been_saved_is_refused():
    resampler = StreamResampler(24_000, 16_000)
    absurd = saved("fake 1", {"fed": np.zeros(10, np.float32)}, given=5_000)
    with pytest.raises(InvalidInput, match=r"snapshot\.given: expected what can be given for 10 samples, got 5000"):
        Snapshot("fake 1", absurd).resume(resampler)
