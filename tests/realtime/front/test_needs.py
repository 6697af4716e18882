"""What several nodes need: a store that they share, and names in what they give away."""

import pytest

from realtime.deployment import load
from realtime.front.head import wanted
from realtime.front.needs import NodesNeedStore
from realtime.front.server import run
from realtime.place import Place
from sessions.voice.sessions import new_id


def test_nodes_that_share_nothing_are_refused() -> None:
    with pytest.raises(NodesNeedStore, match=r"store\.url: expected a store that all nodes share.*for --nodes 2, got memory://"):
        run(load(), 2, None, lambda _: None)


@pytest.mark.parametrize("number", [1, 7, 64])
def test_the_id_of_a_call_names_its_node(number: int) -> None:
    call_id = new_id(Place(host="box-8080", number=number).call_prefix)
    assert wanted(f"DELETE /v1/realtime/calls/{call_id} HTTP/1.1\r\n\r\n".encode()).node == number


def test_without_a_front_calls_name_no_node() -> None:
    assert wanted(f"DELETE /v1/realtime/calls/{new_id(Place(host='box').call_prefix)} HTTP/1.1\r\n\r\n".encode()).node is None
