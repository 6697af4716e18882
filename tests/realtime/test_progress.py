from engines.messages.to_gateway import StageState, StageStatus
from realtime.progress import Progress


def test_each_change_is_a_line_and_ready_comes_once() -> None:
    said: list[str] = []
    settled: list[bool] = []
    clock = iter([10.0, 31.5])
    progress = Progress(said.append, lambda: next(clock), lambda: settled.append(True))
    loading = StageStatus("thinker", StageState.LOADING, 8, "loading weights")
    ready = StageStatus("thinker", StageState.READY, 8)
    for status in (loading, loading, ready, ready, loading, ready):
        progress.update((status,))
    assert [line.strip() for line in said] == [
        "thinker    loading: loading weights",
        "thinker    ready",
        "ready after 21.5 s",
        "thinker    loading: loading weights",
        "thinker    ready",
        "ready again",
    ]
    assert settled == [True]
