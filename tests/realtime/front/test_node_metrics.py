"""The metrics of all nodes on one page."""

import socket

from prometheus_client.parser import text_string_to_metric_families

from fakes.front_nodes import fake_node
from realtime.front.node_metrics import of_all, together
from realtime.handed import End

PAGE = """# HELP antiphon_sessions_active Sessions.
# TYPE antiphon_sessions_active gauge
antiphon_sessions_active {sessions}
# HELP antiphon_requests_total Requests.
# TYPE antiphon_requests_total counter
antiphon_requests_total{{source="chat"}} 2.0
# HELP antiphon_ttft_seconds First text.
# TYPE antiphon_ttft_seconds histogram
antiphon_ttft_seconds_bucket{{le="1.0"}} 1.0
antiphon_ttft_seconds_bucket{{le="+Inf"}} 1.0
antiphon_ttft_seconds_count 1.0
antiphon_ttft_seconds_sum 0.5
"""


def test_each_value_names_its_node_and_each_name_stands_once() -> None:
    text = together({"box-1": PAGE.format(sessions="1.0"), "box-2": PAGE.format(sessions="5.0")}).decode()
    assert 'antiphon_sessions_active{node="box-1"} 1.0' in text
    assert 'antiphon_sessions_active{node="box-2"} 5.0' in text
    assert 'antiphon_requests_total{node="box-2",source="chat"} 2.0' in text
    assert text.count("# TYPE antiphon_ttft_seconds histogram") == 1
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families["antiphon_ttft_seconds"].samples) == 8


class Gone:
    def take(self, connection: socket.socket, end: End | None) -> None:
        raise ConnectionRefusedError("it does not run")


async def test_a_node_that_has_gone_is_left_out() -> None:
    async with fake_node("box-1") as node:
        text = (await of_all({"box-1": node, "box-2": Gone()})).decode()
    assert 'fake{node="box-1"} 1.0' in text
    assert "box-2" not in text
