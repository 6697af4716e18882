"""Which inputs share a step."""

from hypothesis import given
from hypothesis import strategies as st

from engines.messages.to_worker import ServiceClass
from engines.worker.batching import Choice, Ready, choose
from engines.worker.spec import BatchSpec

CONTROL, INTERACTIVE, BATCH = ServiceClass.CONTROL, ServiceClass.INTERACTIVE, ServiceClass.BATCH


def ready(
    row: str,
    since: float,
    *,
    due: float | None = None,
    key: str = "",
    service_class: ServiceClass = INTERACTIVE,
    express: bool = False,
) -> Ready[str]:
    return Ready(row, key, since, since if due is None else due, service_class, express)


def test_nothing_ready_means_wait_for_a_change() -> None:
    assert choose([], BatchSpec(), now=1.0) == Choice([], None)


def test_equal_keys_share_a_step_up_to_max_oldest_first() -> None:
    rows = [ready("c", 3.0), ready("a", 1.0), ready("b", 2.0)]
    assert choose(rows, BatchSpec(max=2), now=3.0).rows == ["a", "b"]


def test_the_oldest_decides_the_key_and_others_of_its_key_overtake() -> None:
    rows = [ready("a", 1.0, key="x"), ready("b", 2.0, key="y"), ready("c", 3.0, key="x")]
    assert choose(rows, BatchSpec(), now=3.0).rows == ["a", "c"]


def test_min_waits_but_never_longer_than_max_wait() -> None:
    batch = BatchSpec(max=4, min=2, max_wait_ms=500)
    assert choose([ready("a", 1.0)], batch, now=1.25) == Choice([], 1.5)
    assert choose([ready("a", 1.0)], batch, now=1.5).rows == ["a"]
    assert choose([ready("a", 1.0), ready("b", 1.25)], batch, now=1.25).rows == ["a", "b"]


def test_waiting_for_min_blocks_no_other_key() -> None:
    batch = BatchSpec(max=4, min=2, max_wait_ms=500)
    rows = [ready("a", 1.0, key="x"), ready("b", 1.125, key="y"), ready("c", 1.25, key="y")]
    assert choose(rows, batch, now=1.25).rows == ["b", "c"]


def test_a_request_that_has_not_emitted_goes_first_and_does_not_wait() -> None:
    batch = BatchSpec(max=4, min=3, max_wait_ms=500)
    rows = [ready("old", 1.0, key="x"), ready("new", 1.125, key="y", express=True)]
    assert choose(rows, batch, now=1.125).rows == ["new"]
    assert choose(rows, BatchSpec(), now=1.125).rows == ["new"]


def test_what_is_far_ahead_of_its_listener_waits_for_who_has_heard_nothing() -> None:
    rows = [ready("ahead", 1.0, due=9.0, key="a"), ready("new", 4.0, key="n", express=True), ready("near", 2.0, due=4.5, key="b")]
    assert choose(rows, BatchSpec(), now=4.0).rows == ["new"]
    assert choose([rows[0], rows[2]], BatchSpec(), now=4.0).rows == ["near"]


def test_classes_go_in_order() -> None:
    rows = [
        ready("batch", 1.0, key="b", service_class=BATCH),
        ready("interactive", 1.0, key="i"),
        ready("control", 1.125, key="c", service_class=CONTROL),
    ]
    assert choose(rows, BatchSpec(), now=2.0).rows == ["control"]
    assert choose(rows[:2], BatchSpec(), now=2.0).rows == ["interactive"]


def test_batch_class_ages_past_a_steady_stream_of_control() -> None:
    waiting = ready("batch", 1.0, key="b", service_class=BATCH)
    fresh = ready("control", 3.5, key="c", service_class=CONTROL, express=True)
    assert choose([fresh, waiting], BatchSpec(), now=3.5).rows == ["batch"]


@given(
    st.lists(
        st.builds(
            ready,
            st.uuids().map(str),
            st.floats(0, 10),
            key=st.sampled_from("xyz"),
            service_class=st.sampled_from(ServiceClass),
            express=st.booleans(),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 4),
    st.integers(1, 4),
    st.floats(0, 3000),
)
def test_a_step_has_one_key_and_someone_always_runs_in_the_end(
    rows: list[Ready[str]], low: int, high: int, max_wait_ms: float
) -> None:
    batch = BatchSpec(max=max(low, high), min=min(low, high), max_wait_ms=max_wait_ms)
    chosen = choose(rows, batch, now=10.0)
    if chosen.due is not None:
        assert not chosen.rows
        chosen = choose(rows, batch, now=chosen.due)
    by_row = {one.row: one for one in rows}
    assert 1 <= len(chosen.rows) <= batch.max
    assert len({by_row[row].key for row in chosen.rows}) == 1
