from engines.messages.to_gateway import StageState, StageStatus
from realtime.progress import Progress


def said_of(*notes_and_states: tuple[StageState, str]) -> list[str]:
    said: list[str] = []
    progress = Progress(said.append, lambda: 0.0, lambda: None)
    for state, note in notes_and_states:
        progress.update((StageStatus("asr", StageState.READY, 8), StageStatus("thinker", state, 8, note)))
    return [line.strip() for line in said]


def test_ready_comes_once_and_what_is_lost_comes_back() -> None:
    said: list[str] = []
    settled: list[bool] = []
    clock = iter([10.0, 31.5])
    progress = Progress(said.append, lambda: next(clock), lambda: settled.append(True))
    loading = StageStatus("thinker", StageState.LOADING, 8, "loading weights")
    ready = StageStatus("thinker", StageState.READY, 8)
    lost = StageStatus("thinker", StageState.LOADING, 8, "killed by SIGKILL")
    for status in (loading, loading, ready, ready, lost, loading, ready):
        progress.update((status,))
    assert [line.strip() for line in said] == [
        "loading thinker",
        "thinker    ready",
        "ready after 21.5 s",
        "thinker    loading",
        "thinker    ready",
        "ready again",
    ]
    assert settled == [True]


def test_a_failure_is_told_once_however_often_it_is_tried_again() -> None:
    failed = (StageState.FAILED, "no room")
    loading = (StageState.LOADING, "loading vllm")
    assert said_of(loading, failed, loading, failed, (StageState.FAILED, "less room"), (StageState.READY, "")) == [
        "loading asr, thinker",
        "thinker    failed",
        "thinker    ready",
        "ready after 0.0 s",
    ]
