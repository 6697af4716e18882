"""Edges that the operator does not want chunked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.held import MOST_HELD_BYTES
from engines.bridges.speakable_clauses import SpeakableClauses
from engines.bridges.whole import whole, with_whole_edges
from engines.parameters import Speech
from engines.payloads import Array, Payload
from engines.pipeline import BrokenStream, PipelineError
from fakes.pipelines import CASCADE, Unchanged

JOE = Speech(voice="joe")


@given(st.lists(st.text(max_size=30), max_size=12))
def test_the_same_comes_out_at_the_end(pieces: list[str]):
    held, chunked = whole(SpeakableClauses)(JOE), SpeakableClauses(JOE)
    payloads = [Payload(text=piece) for piece in pieces]
    assert [held.feed(payload) for payload in payloads] == [[]] * len(payloads)
    expected = [clause for payload in payloads for clause in chunked.feed(payload)]
    assert held.finish() == expected + chunked.finish()


def test_what_is_held_is_a_copy():
    """What comes may be a view of memory that its producer wants to use again."""
    held, lent = whole(Unchanged)(JOE), np.arange(3)
    held.feed(Payload(arrays={"ids": Array.of(lent)}))
    lent[:] = -1
    assert held.finish()[0].arrays["ids"].numpy().tolist() == [0, 1, 2]


def test_too_much_to_hold_is_refused():
    held, half = whole(Unchanged)(JOE), Payload(arrays={"ids": Array.of(np.zeros(MOST_HELD_BYTES // 2, np.uint8))})
    held.feed(half)
    held.feed(half)
    with pytest.raises(BrokenStream, match="chunk this edge"):
        held.feed(Payload(text="x"))


def test_the_operator_names_edges_of_the_pipeline():
    record = with_whole_edges(CASCADE, ["ear->mind"])
    assert [edge.name for edge in record.edges] == [edge.name for edge in CASCADE.edges]
    held, chunked = (edge.bridge(JOE) for edge in record.edges)
    assert (held.feed(Payload(text="a")), chunked.feed(Payload(text="a"))) == ([], [Payload(text="a")])
    with pytest.raises(PipelineError, match="has no edge 'ear->mouth'; it has ear->mind, mind->mouth"):
        with_whole_edges(CASCADE, ["ear->mouth"])
