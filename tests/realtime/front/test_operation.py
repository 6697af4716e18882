"""What an operator orders of the front, over its control socket."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from realtime.cli import main
from realtime.front.control import NoFront, ask, control_path, serve_control
from realtime.front.messages import Answer, Drain, Look, Restart, ToFront, Told, encoder
from realtime.front.operation import Operation


@dataclass
class Node:
    """`hangs`: it never becomes ready again."""

    name: str
    log: list[str]
    is_ready: bool = True
    hangs: bool = False
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_go_on.set()

    def told(self) -> Told:
        return Told(node=self.name, pid=7, starts=1, ready=self.is_ready, draining=False, sessions=0)

    async def restart(self, ready_limit_s: float) -> None:
        self.log.append(f"{self.name} restarts")
        self.is_ready = False
        await self.may_go_on.wait()
        if self.hangs:
            async with asyncio.timeout(ready_limit_s):
                await asyncio.Event().wait()
        self.is_ready = True
        self.log.append(f"{self.name} is ready")

    async def stop(self) -> None:
        self.log.append(f"{self.name} stops")
        self.is_ready = False


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def nodes(log: list[str]) -> list[Node]:
    return [Node("box-1", log), Node("box-2", log)]


async def answers(operation: Operation, order: ToFront) -> list[Answer]:
    return [answer async for answer in operation.obey(order)]


async def test_all_are_restarted_one_after_the_other(nodes: list[Node], log: list[str]) -> None:
    said = await answers(Operation(nodes), Restart())
    assert log == ["box-1 restarts", "box-1 is ready", "box-2 restarts", "box-2 is ready"]
    assert said[-1].done
    assert not said[-1].fault
    assert [answer.said for answer in said[:2]] == ["box-1 drains", "box-1 is ready again"]


async def test_one_alone_can_be_restarted_or_taken_away(nodes: list[Node], log: list[str]) -> None:
    operation = Operation(nodes)
    await answers(operation, Restart("box-2"))
    await answers(operation, Drain("box-1"))
    assert log == ["box-2 restarts", "box-2 is ready", "box-1 stops"]


@pytest.mark.parametrize("order", [Restart(), Restart("box-1"), Drain("box-1")])
async def test_the_last_that_is_ready_stays(nodes: list[Node], log: list[str], order: ToFront) -> None:
    nodes[1].is_ready = False
    (answer,) = await answers(Operation(nodes), order)
    assert answer.fault == "box-1 stays: no other node is ready to take its sessions"
    assert log == []


async def test_a_node_that_does_not_come_back_ends_the_restart(nodes: list[Node], log: list[str]) -> None:
    nodes[0].hangs = True
    said = await answers(Operation(nodes, ready_limit_s=0.01), Restart())
    assert "box-1 is not ready again" in said[-1].fault
    assert log == ["box-1 restarts"]


async def test_an_unknown_node_is_named_with_those_that_are_known(nodes: list[Node]) -> None:
    (answer,) = await answers(Operation(nodes), Drain("box-9"))
    assert answer.fault == "node: expected one of box-1, box-2, got 'box-9'"


async def test_one_order_at_a_time_changes_anything(nodes: list[Node]) -> None:
    nodes[0].may_go_on.clear()
    operation = Operation(nodes)
    restarting = asyncio.create_task(answers(operation, Restart()))
    await asyncio.sleep(0)
    assert "another order" in (await answers(operation, Drain("box-2")))[-1].fault
    assert [node.node for node in (await answers(operation, Look()))[-1].nodes] == ["box-1", "box-2"]
    nodes[0].may_go_on.set()
    assert (await restarting)[-1].done


async def test_orders_and_answers_cross_the_socket_which_is_ours_alone(nodes: list[Node], tmp_path: Path) -> None:
    path = tmp_path / "front" / "8080.sock"
    with closing(await serve_control(path, Operation(nodes).obey)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        said = [answer async for answer in ask(path, Restart())]
        assert [answer.said for answer in said] == [
            *("box-1 drains", "box-1 is ready again", "box-2 drains", "box-2 is ready again", "")
        ]


async def test_nonsense_on_the_socket_is_answered_and_harms_nobody(nodes: list[Node], tmp_path: Path) -> None:
    path = tmp_path / "front" / "8080.sock"
    with closing(await serve_control(path, Operation(nodes).obey)):
        for nonsense in (b"\x00\n", b'{"type": "Explode"}\n', b"x" * (2 << 20) + b"\n", b""):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(nonsense)
            writer.write_eof()
            with suppress(ConnectionResetError):  # of more than it reads the rest is cut off
                assert b"not understood" in await reader.read(-1)
            writer.close()
        assert [answer.done async for answer in ask(path, Look())] == [True]


async def test_an_operator_who_hangs_up_stops_before_the_next_node(nodes: list[Node], log: list[str], tmp_path: Path) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
    path = tmp_path / "front" / "8080.sock"
    nodes[0].may_go_on.clear()
    with closing(await serve_control(path, Operation(nodes).obey)):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(encoder.encode(Restart()) + b"\n")
        assert b"box-1 drains" in await reader.readline()
        writer.close()
        await writer.wait_closed()
        nodes[0].may_go_on.set()
        async with asyncio.timeout(5):
            while (last := [answer async for answer in ask(path, Restart("box-1"))][-1]).fault:
                assert "another order" in last.fault
    assert faults == []
    assert log == ["box-1 restarts", "box-1 is ready"] * 2


async def test_a_folder_of_somebody_else_is_not_used(nodes: list[Node], tmp_path: Path) -> None:
    folder = tmp_path / "front"
    folder.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="0700"):
        await serve_control(folder / "8080.sock", Operation(nodes).obey)


async def test_without_a_front_the_command_says_where_it_has_looked() -> None:
    with pytest.raises(NoFront, match="--nodes"):
        await anext(aiter(ask(control_path(1), Look())))


async def _ends(order: ToFront) -> AsyncIterator[Answer]:
    return
    yield Answer()


async def test_a_front_that_ends_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "front" / "8080.sock"
    with closing(await serve_control(path, _ends)), pytest.raises(NoFront, match="hung up"):
        await anext(aiter(ask(path, Look())))


@pytest.mark.parametrize("words", [["--port", "1", "status"], ["status", "--port", "1"], ["restart", "--port", "1"]])
def test_the_server_is_named_before_the_order_or_after_it(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nodes", *words]) == 1
    assert f"{control_path(1)}" in capsys.readouterr().err
