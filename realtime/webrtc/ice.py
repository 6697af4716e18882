"""The UDP side of a call: sockets on every address of this machine, and aioice's connectivity checks, mended.

Mended, each with a test that tells when it is no longer needed: loopback is offered, too; ports come from the operator's range; a
datagram that is empty, too long or malformed ends nothing; what waits before the call is connected is bounded; the connection is
up when the client nominates, not up to 20 ms later; names are never resolved for a client.
"""

import asyncio
import contextlib
import ipaddress
import logging
import struct
from typing import Any

import ifaddr
from aioice import Candidate, Connection, stun
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import ICE_COMPLETED, StunProtocol, relayed_candidate, server_reflexive_candidate

from realtime.webrtc.offer import Offer
from realtime.webrtc.settings import IceServer, WebRtcSettings
from realtime.webrtc.udp_ports import bind_one_port

log = logging.getLogger(__name__)
logging.getLogger("aioice").setLevel(logging.WARNING)  # several lines for each pair of addresses that might work

MAX_DATAGRAM_BYTES = 1500
MAX_WAITING_DATAGRAMS = 512
"""Received and not yet read. Overflow policy: drop, as networks do. Only before the handshake can so many wait."""
MAX_REMOTE_CANDIDATES = 32
"""Addresses from which a client may check: each costs a task and a retransmission timer."""
CHECK_INTERVAL_S = 0.02
SERVER_TIMEOUT_S = 2.0
"""A STUN or TURN server that has not answered by then is left out."""
CLOSE_TIMEOUT_S = 1.0


class IceLink(Connection):
    """The controlled side of ICE (RFC 8445). `gather_candidates`, then `connect`; `close` in any state."""

    def __init__(self, settings: WebRtcSettings, offer: Offer) -> None:
        super().__init__(ice_controlling=offer.ice_lite)
        self.remote_username = offer.ice_username
        self.remote_password = offer.ice_password
        self.remote_is_lite = offer.ice_lite
        self._settings = settings
        self._offered = offer.candidates

    async def gather_candidates(self) -> None:
        """Raises Refusal (503) when no port is free."""
        await self._open_sockets()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVER_TIMEOUT_S), asyncio.TaskGroup() as tasks:
                for server in self._settings.ice_servers:
                    tasks.create_task(self._ask(server))
        self._local_candidates_end = True
        for remote in self._offered:
            self._remote_candidates.append(
                Candidate(
                    foundation=remote.foundation,
                    component=1,
                    transport="udp",
                    priority=remote.priority,
                    host=remote.address,
                    port=remote.port,
                    type=remote.type,
                )
            )

    def announced_candidates(self) -> list[Candidate]:
        """What the answer names. Announced addresses stand in for this machine's own, which all have the same port."""
        announced = self._settings.announced_addresses
        if not announced:
            return self.local_candidates
        stand_ins = [_host_candidate(address, self._local_candidates[0].port, place) for place, address in enumerate(announced)]
        return stand_ins + [candidate for candidate in self._local_candidates if candidate.type != "host"]

    async def connect(self) -> None:
        """Returns once the client has nominated a pair of addresses, however long its checks take. Raises ConnectionError."""
        for candidate in self._remote_candidates:
            self._pair_remote_candidate(candidate)
        self.sort_check_list()
        self._unfreeze_initial()
        for early_check in self._early_checks:
            self.check_incoming(*early_check)
        self._early_checks.clear()
        self._early_checks_done = True
        checks = asyncio.create_task(self._check_all())
        try:
            outcome = await self._check_list_state.get()
        finally:
            checks.cancel()
            for pair in self._check_list:
                if pair.task is not None:
                    pair.task.cancel()
        if outcome != ICE_COMPLETED:
            raise ConnectionError("no pair of addresses works")
        self._query_consent_task = asyncio.create_task(self.query_consent())

    async def close(self) -> None:
        """Bounded: a socket that cannot be flushed is dropped."""
        protocols = list(self._protocols)
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await super().close()
        except TimeoutError:
            for protocol in protocols:
                protocol.transport.abort()

    def check_incoming(self, message: stun.Message, addr: tuple[str, int], protocol: StunProtocol) -> None:
        known = any((candidate.host, candidate.port) == addr for candidate in self._remote_candidates)
        if known or len(self._remote_candidates) < MAX_REMOTE_CANDIDATES:
            super().check_incoming(message, addr, protocol)

    def data_received(self, data: bytes, component: int) -> None:
        if self._queue.qsize() < MAX_WAITING_DATAGRAMS:
            super().data_received(data, component)

    async def _open_sockets(self) -> None:
        sockets = bind_one_port(local_addresses(), self._settings.udp_ports)
        loop = asyncio.get_running_loop()
        try:
            for place, bound in enumerate(list(sockets)):
                host, port = bound.getsockname()[:2]
                _, protocol = await loop.create_datagram_endpoint(lambda: _Port(self), sock=bound)
                sockets.remove(bound)
                protocol.local_candidate = _host_candidate(host, port, place)
                self._protocols.append(protocol)
                self._local_candidates.append(protocol.local_candidate)
        finally:
            for left in sockets:
                left.close()

    async def _ask(self, server: IceServer) -> None:
        """For the address under which the server sees this machine, or for one of its own."""
        try:
            if server.address.scheme == "stun":
                await self._ask_stun(server)
            else:
                await self._ask_turn(server)
        except (OSError, stun.TransactionError) as wrong:
            log.warning("%s gives no candidate: %s", server.url, wrong)

    async def _ask_stun(self, server: IceServer) -> None:
        """aioice asks by IPv4 alone."""
        for protocol in list(self._protocols):
            host = ipaddress.ip_address(protocol.local_candidate.host)
            if host.version == 4 and not host.is_loopback and protocol.local_candidate.type == "host":
                candidate, _ = await server_reflexive_candidate(protocol, (server.address.host, server.address.port))
                self._local_candidates.append(candidate)

    async def _ask_turn(self, server: IceServer) -> None:
        candidate, protocol = await relayed_candidate(
            component=1,
            hide_related_address=False,
            protocol_factory=lambda: _Port(self),
            turn_server=(server.address.host, server.address.port),
            turn_username=server.username,
            turn_password=server.credential,
            turn_ssl=server.address.scheme == "turns",
            turn_transport=server.address.transport,
        )
        self._protocols.append(protocol)
        self._local_candidates.append(candidate)

    async def _check_all(self) -> None:
        """The client's addresses, one every 20 ms (RFC 8445, 14). Those that it checks itself are checked at once."""
        for _ in range(len(self._check_list)):
            self._check_periodic()
            await asyncio.sleep(CHECK_INTERVAL_S)


class _Port(StunProtocol):
    """One socket. Anybody may send to it."""

    def datagram_received(self, data: bytes | str, addr: tuple[Any, ...]) -> None:
        if not isinstance(data, bytes) or not 0 < len(data) <= MAX_DATAGRAM_BYTES:
            return
        if data[0] > 3:  # not STUN (RFC 7983)
            self.receiver.data_received(data, self.local_candidate.component)
            return
        try:
            super().datagram_received(data, addr)
        except (ValueError, KeyError, AssertionError, struct.error) as wrong:
            log.debug("a malformed STUN message: %r", wrong)


def local_addresses() -> list[str]:
    """Of this machine, in the order of preference: loopback, which serves a browser beside the server, comes last."""
    found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    addresses = [ip if isinstance(ip, str) else ip[0] for ip in found if isinstance(ip, str) or ip[2] == 0]
    return sorted(dict.fromkeys(addresses), key=lambda address: ipaddress.ip_address(address).is_loopback)


def _host_candidate(host: str, port: int, place: int) -> Candidate:
    return Candidate(
        foundation=candidate_foundation("host", "udp", host),
        component=1,
        transport="udp",
        priority=candidate_priority(1, "host", 65_535 - place),
        host=host,
        port=port,
        type="host",
    )
