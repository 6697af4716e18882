"""Rolling context and keys and values: what can be read of them, and that nothing which others hold is ever written."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engines.diffusion.native.context import RollingContext
from engines.diffusion.native.key_values import KeyValues
from fakes.listed import listed


def test_the_last_entries_stay_and_zeros_stand_before_a_beginning() -> None:
    context = RollingContext.empty(3, (2,))
    assert context.entries().shape == (0, 2)
    for value in range(1, 3):
        context = context.grown(torch.full((2,), float(value)))
    assert listed(context.padded()[:, 0]) == [0, 1, 2]
    for value in range(3, 6):
        context = context.grown(torch.full((2,), float(value)))
    assert (listed(context.entries()[:, 0]), context.seen) == ([3, 4, 5], 5)


def test_what_is_put_in_is_copied_and_only_its_own_bytes_are_held() -> None:
    batch = torch.arange(100.0).reshape(50, 2)
    context = RollingContext.empty(2, (2,)).grown(batch[7])
    tokens = KeyValues.empty(4, 0, (2,)).appended(batch[:5])
    batch.zero_()
    assert listed(context.entries()) == [[14, 15]]
    assert listed(tokens.entries()[:, 0]) == [0, 2, 4, 6, 8]
    held = [*context.items, *tokens.pages]
    assert [tensor.untyped_storage().nbytes() for tensor in held] == [tensor.numel() * 4 for tensor in held]


def test_what_grows_shares_what_stays() -> None:
    context = RollingContext.empty(3, (1,)).grown(torch.ones(1)).grown(torch.ones(1))
    assert [item is before for item, before in zip(context.grown(torch.ones(1)).items, context.items, strict=False)] == [True] * 2
    tokens = KeyValues.empty(2, 0, (1,)).appended(torch.ones(5, 1))
    shared = [page is before for page, before in zip(tokens.appended(torch.ones(1, 1)).pages, tokens.pages, strict=True)]
    assert shared == [True, True, False]  # the last one was not full


@given(st.integers(1, 5), st.integers(0, 12), st.lists(st.integers(0, 7), max_size=12))
def test_pages_read_as_one_list_seen_through_its_window(page: int, window: int, blocks: list[int]) -> None:
    tokens, plain = KeyValues.empty(page, window, (1,)), list[float]()
    for count in blocks:
        block = [float(len(plain) + at) for at in range(count)]
        before, read = tokens, tokens.entries().clone()
        tokens = tokens.appended(torch.tensor(block).reshape(-1, 1))
        plain += block
        seen = plain[-window:] if window else plain
        assert (listed(tokens.entries().flatten()), len(tokens), tokens.seen) == (seen, len(seen), len(plain))
        assert torch.equal(before.entries(), read)
        assert all(len(full) == page for full in tokens.pages[:-1])
        assert sum(map(len, tokens.pages)) < len(seen) + page or not window
    again = KeyValues.empty(page, window, (1,)).holding(tokens.entries(), tokens.seen)
    more = torch.tensor([[-1.0], [-2.0]])
    assert torch.equal(again.appended(more).entries(), tokens.appended(more).entries())


@pytest.mark.parametrize("wrong", [torch.ones(3), torch.ones(1, 2), torch.tensor(1.0)])
def test_other_shapes_are_refused_with_both(wrong: Tensor) -> None:
    with pytest.raises(ValueError, match=r"item: expected shape \(2,\), got"):
        RollingContext.empty(3, (2,)).grown(wrong)
    with pytest.raises(ValueError, match=r"tokens: expected shape \(any, 3, 2\), got"):
        KeyValues.empty(3, 3, (3, 2)).appended(wrong)


def test_narrow_types_are_kept_and_types_that_a_snapshot_cannot_hold_are_refused() -> None:
    half = RollingContext.empty(2, (1,), torch.bfloat16).grown(torch.tensor([1 / 3]))
    assert half.entries().dtype == torch.bfloat16
    assert torch.equal(half.holding(half.entries().float(), 1).entries(), half.entries())
    for dtype in (torch.int64, torch.float64):
        with pytest.raises(ValueError, match="dtype: expected float32"):
            RollingContext.empty(2, (1,), dtype)
        with pytest.raises(ValueError, match="dtype: expected float32"):
            KeyValues.empty(2, 2, (1,), dtype)
