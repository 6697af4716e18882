"""The metrics of all nodes as one page, each value with the node that it is of."""

import asyncio
import socket
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from realtime.front.door import Taker
from realtime.handed import End

LIMIT_S = 2.0
"""A node that does not answer within it is left out."""
OURSELVES = End("127.0.0.1", "127.0.0.1")
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


async def of_all(nodes: Mapping[str, Taker]) -> bytes:
    """`nodes` by name; those that do not answer are left out."""
    answers = await asyncio.gather(*(_of_one(node) for node in nodes.values()))
    return together({name: text for name, text in zip(nodes, answers, strict=True) if text is not None})


async def _of_one(node: Taker) -> str | None:
    ours, theirs = socket.socketpair()
    try:
        node.take(theirs, OURSELVES)
        async with asyncio.timeout(LIMIT_S):
            reader, writer = await asyncio.open_connection(sock=ours)
            try:
                writer.write(REQUEST)
                head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
            finally:
                writer.close()
    except OSError:
        ours.close()
        theirs.close()
        return None
    return body.decode() if head.startswith(b"HTTP/1.1 200 ") else None


class _Together(Collector):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def collect(self) -> Iterable[Metric]:
        """One of each name: the format wants all values of a name in one place."""
        families: dict[str, Metric] = {}
        for node, text in self._texts.items():
            for family in _families(text):
                whole = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    whole.samples.append(sample._replace(labels={"node": node, **sample.labels}))
        return families.values()


def together(texts: Mapping[str, str]) -> bytes:
    """`texts` are Prometheus' text format, by node."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Together(texts))
    return generate_latest(registry)


def _families(text: str) -> Iterator[Metric]:
    yield from text_string_to_metric_families(text)
