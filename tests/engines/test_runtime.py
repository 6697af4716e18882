"""The whole runtime: real worker processes with a fake model."""

import asyncio
from pathlib import Path

import pytest

from engines.messages.to_gateway import ErrorKind, StageState
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.launched import Launch, ask, is_alive, is_there, launcher, request


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setenv("PYTHONPATH", "tests")
    return launcher(tmp_path)


async def test_serves_over_two_processes_and_leaves_none(launched: Launch) -> None:
    async with launched() as runtime:
        assert [status.state for status in runtime.stage_statuses()] == [StageState.LOADING] * 2
        await runtime.ready.wait()
        assert await ask(await runtime.submit(request("r")), "a", "b") == ["a", "b", ""]
        assert await ask(await runtime.submit(request("r", "once")), "a") == ["a", ""]
        reports = await runtime.reports()
        assert {name: report.stages[0].produced for name, report in reports.items()} == {"one": 0, "two": 0}
        running = runtime.pids()
        assert all(pid is not None and is_alive(pid) for pid in running.values())
        assert runtime.active() == {"first": 0, "second": 0}
    assert not any(pid is not None and is_alive(pid) for pid in running.values())


async def test_temporary_files_go_with_the_run(launched: Launch) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        path, _ = await ask(await runtime.submit(request("r", "once")), "temporary")
        assert is_there(path)
        assert Path(path).parent.parent.name.startswith("antiphon-")
    assert not is_there(Path(path).parent.parent)


@pytest.mark.parametrize(
    ("text", "kind"), [("raise", ErrorKind.ENGINE), ("memory", ErrorKind.ENGINE), ("forbidden", ErrorKind.INVALID)]
)
async def test_a_models_own_error_ends_one_request_and_no_worker(launched: Launch, text: str, kind: ErrorKind) -> None:
    async with launched() as runtime:
        await runtime.ready.wait()
        with pytest.raises(RequestFailed) as failed:
            await ask(await runtime.submit(request("r")), text)
        assert failed.value.kind is kind
        assert await ask(await runtime.submit(request("r")), "a") == ["a", ""]
        assert [worker.starts for worker in runtime.worker_statuses()] == [1, 1]


async def test_a_model_that_raises_while_it_is_aborted_holds_up_nobody(launched: Launch) -> None:
    async with launched(bad_farewell=True) as runtime:
        await runtime.ready.wait()
        stream = await runtime.submit(request("r"))
        await stream.push(Payload(text="a"))
        await anext(aiter(stream))
        async with asyncio.timeout(1):
            await stream.abort()
        again = await runtime.submit(request("r"))
        await again.push(Payload(text="b"))
        assert (await anext(aiter(again))).payload.text == "b"
        await again.abort()
        assert [worker.starts for worker in runtime.worker_statuses()] == [1, 1]
