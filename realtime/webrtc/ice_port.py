"""One UDP socket of a call, or a relay's. Anybody may send to it."""

import asyncio
import ipaddress
import logging
import struct
from typing import Any, Protocol, cast

import ifaddr
from aioice import Candidate, Connection, stun
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import StunProtocol
from aioice.turn import TurnClientUdpProtocol, TurnTransport

log = logging.getLogger(__name__)
logging.getLogger("aioice").setLevel(logging.WARNING)  # several lines for each pair of addresses that might work

MAX_DATAGRAM_BYTES = 1500
MALFORMED = (ValueError, KeyError, AssertionError, struct.error)
_LAST_STUN, FIRST_RTP = 3, 128
"""First bytes (RFC 7983). Between them lies DTLS."""


class Receiver(Protocol):
    """What else a port's connection does."""

    def is_known(self, address: tuple[str, int]) -> bool:
        """Whether the client has shown that it can be reached there."""
        ...

    def answered(self, answer: stun.Message) -> None:
        """By somebody, to a question that no transaction waits for."""
        ...


class Port(StunProtocol):
    """Keeps from its connection what is empty, too long or malformed, and DTLS of strangers, of whom a handshake believes too
    much. Sound is authenticated whoever sends it: a client whose address has just changed is heard at once."""

    def __init__(self, connection: Connection, receiver: Receiver) -> None:
        super().__init__(connection)
        self._receiver = receiver

    def abort(self) -> None:
        """Drops what is not sent, and a relay that does not say goodbye: asking it goes on for half a minute."""
        transport: object = self.transport
        if not isinstance(transport, TurnTransport):
            self.transport.abort()
            return
        parts = vars(transport)  # aioice has no such way
        closing = cast(asyncio.Task[None] | None, parts["_TurnTransport__close_task"])
        inner = cast(TurnClientUdpProtocol, parts["_TurnTransport__inner_protocol"])
        for task in (closing, inner.refresh_task):
            if task is not None:
                task.cancel()
        inner.transport.close()

    def datagram_received(self, data: bytes | str, addr: tuple[Any, ...]) -> None:
        if not isinstance(data, bytes) or not 0 < len(data) <= MAX_DATAGRAM_BYTES:
            return
        if data[0] > _LAST_STUN:
            if data[0] >= FIRST_RTP or self._receiver.is_known((addr[0], addr[1])):
                self.receiver.data_received(data, self.local_candidate.component)
            return
        try:
            self._stun_received(stun.parse_message(data), (addr[0], addr[1]))
        except MALFORMED as wrong:
            log.debug("a malformed STUN message: %r", wrong)

    def _stun_received(self, message: stun.Message, address: tuple[str, int]) -> None:
        match message.message_class:
            case stun.Class.REQUEST:
                self.receiver.request_received(message, address, self)
            case stun.Class.RESPONSE | stun.Class.ERROR:
                if message.transaction_id in self.transactions:
                    self.transactions[message.transaction_id].response_received(message, address)
                else:
                    self._receiver.answered(message)
            case stun.Class.INDICATION:
                pass


def local_addresses() -> list[str]:
    """Of this machine, in the order of preference: loopback, which serves a browser beside the server, comes last."""
    found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    addresses = [ip if isinstance(ip, str) else ip[0] for ip in found if isinstance(ip, str) or ip[2] == 0]
    return sorted(dict.fromkeys(addresses), key=lambda address: ipaddress.ip_address(address).is_loopback)


def host_candidate(host: str, port: int, place: int) -> Candidate:
    return Candidate(
        foundation=candidate_foundation("host", "udp", host),
        component=1,
        transport="udp",
        priority=candidate_priority(1, "host", 65_535 - place),
        host=host,
        port=port,
        type="host",
    )
