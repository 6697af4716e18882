"""What a request leaves with its connector, at each of its ends."""

import pytest

from engines.chunks import ChunkTiming
from engines.connectors.contents import Content, Key
from engines.connectors.inline import InlineConnector
from engines.messages.to_gateway import ErrorKind, ToGateway
from engines.messages.to_worker import ServiceClass, Submit
from engines.parameters import Activity
from engines.payloads import Payload
from engines.worker.stage_request import StageRequest

TIMING = ChunkTiming(0.0, 0.0)


class SilentOutlet:
    namespace = "gateway#0"

    def send(self, message: ToGateway) -> None: ...

    def give_up(self, request: StageRequest, kind: ErrorKind, message: str) -> None: ...

    def forget(self, request: StageRequest) -> None: ...


class RememberingConnector(InlineConnector):
    """`keys` it still holds."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, int]] = set()

    def put(self, key: Key, payload: Payload) -> Content:
        self.keys.add((key.scope, key.seq))
        return super().put(key, payload)

    def cleanup(self, scope: str, before: int | None = None) -> int:
        gone = {key for key in self.keys if key[0] == scope}
        self.keys -= gone
        return len(gone)


@pytest.mark.parametrize("end", ["final", "fail", "end"])
def test_the_connector_is_told_to_forget_what_it_holds_of_an_ended_request(end: str) -> None:
    connector = RememberingConnector()
    ending, other = (
        StageRequest(
            Submit(name, "test", "echo", (), 7, 3, "session", ServiceClass.INTERACTIVE, Activity(), 64, 1 << 20, 0.0),
            "echo",
            None,
            SilentOutlet(),
            connector,
        )
        for name in ("r", "r2")
    )
    for request in (ending, other):
        request.produce(Payload("x"), TIMING)
    assert connector.keys == {("gateway#0/r/7/echo", 0), ("gateway#0/r2/7/echo", 0)}
    match end:
        case "final":
            ending.produce(Payload(), TIMING, final=True)
        case "fail":
            ending.fail(ErrorKind.ENGINE, "scripted")
        case _:
            ending.end()
    assert connector.keys == {("gateway#0/r2/7/echo", 0)}
