"""What the records of edges and joins do in a running graph: real worker processes with a fake model."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engines.deployment import Chunking, GraphSettings, StageSettings
from engines.launching.worker_settings import WorkerSettings
from engines.payloads import Payload
from engines.pipeline import Pipeline
from engines.requests import Delivery, Request
from engines.runtime import Runtime
from fakes.pipelines import DIAMOND, ECHOES

START_LIMIT_S = 20


@asynccontextmanager
async def running(pipeline: Pipeline, folder: Path, **edges: Chunking) -> AsyncGenerator[Runtime]:
    names = tuple(stage.name for stage in pipeline.stages)
    settings = GraphSettings(
        pipeline=pipeline.name,
        workers={"one": WorkerSettings(stages=names[::2]), "two": WorkerSettings(stages=names[1::2])},
        stages={name: StageSettings(model="fakes.echo_model:Echo", directory=str(folder)) for name in names},
        voices={},
        edges=edges,
    )
    async with Runtime(settings).running() as runtime:
        async with asyncio.timeout(START_LIMIT_S):
            await runtime.ready.wait()
        yield runtime


async def echoed(runtime: Runtime, request: Request, *texts: str) -> list[Delivery]:
    """Each text is pushed when the one before has come out of some output."""
    deliveries: list[Delivery] = []
    async with await runtime.submit(request) as stream:
        waiting = iter(texts)
        await stream.push(Payload(text=next(waiting)))
        async for delivery in stream:
            deliveries.append(delivery)
            if delivery.output == request.outputs[0] and not delivery.final:
                text = next(waiting, "")
                await stream.push(Payload(text=text), final=not text)
    return deliveries


@pytest.fixture(autouse=True)
def workers_find_the_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")


async def test_an_edge_that_is_not_chunked_waits_for_the_end_and_loses_nothing(tmp_path: Path) -> None:
    async with running(ECHOES, tmp_path, **{"first->second": Chunking.FULL}) as runtime:
        request = Request(request_id="r", entry="first", outputs=("once", "twice"), parameters={})
        deliveries = await echoed(runtime, request, "a", "b", "c")
    assert [delivery.payload.text for delivery in deliveries if not delivery.final] == ["a", "b", "c", "a", "b", "c"]
    assert [delivery.output for delivery in deliveries if not delivery.final] == ["once"] * 3 + ["twice"] * 3


async def test_two_legs_meet_by_number(tmp_path: Path) -> None:
    async with running(DIAMOND, tmp_path) as runtime:
        request = Request(request_id="r", entry="top", outputs=("both",), parameters={})
        deliveries = await echoed(runtime, request, "a", "b", "c")
    expected = [{"left": text, "right": text} for text in "abc"]
    assert [delivery.payload.attributes for delivery in deliveries if not delivery.final] == expected
