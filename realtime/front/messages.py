"""What the front and its nodes tell each other over their channel, and what an operator's command asks of the front."""

from typing import TypeAlias

import msgspec

from engines.deployment import GraphSettings
from realtime.deployment import Deployment
from realtime.handed import End
from realtime.place import Place


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is told when it starts. The workers of `graph` run already."""

    deployment: Deployment
    graph: GraphSettings
    place: Place


class Handed(msgspec.Struct, frozen=True):
    """A connection, with its descriptor. `end` None: it is the client's own socket."""

    end: End | None = None


class Status(msgspec.Struct, frozen=True):
    """Of a node: told when it changes, and every second as a sign of life."""

    ready: bool = False
    draining: bool = False
    sessions: int = 0


class Look(msgspec.Struct, frozen=True, tag=True):
    """How the nodes are."""


class Drain(msgspec.Struct, frozen=True, tag=True):
    """The node drains and ends; it stays away until it is restarted."""

    node: str


class Restart(msgspec.Struct, frozen=True, tag=True):
    """One node after the other drains, starts anew and is ready; `node` empty: all of them."""

    node: str = ""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """`pid` 0: not running at the moment."""

    node: str
    pid: int
    starts: int
    ready: bool
    draining: bool
    sessions: int


class Answer(msgspec.Struct, frozen=True):
    """The last one of an order has `done`; `fault` says in a sentence why it was not carried out."""

    nodes: tuple[Told, ...] = ()
    said: str = ""
    done: bool = False
    fault: str = ""


ToFront: TypeAlias = Look | Drain | Restart

encoder = msgspec.json.Encoder()
spec_decoder = msgspec.json.Decoder(NodeSpec)
handed_decoder = msgspec.json.Decoder(Handed)
status_decoder = msgspec.json.Decoder(Status)
order_decoder = msgspec.json.Decoder(ToFront)
answer_decoder = msgspec.json.Decoder(Answer)
