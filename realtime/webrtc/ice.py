"""The UDP side of a call: sockets on every address of this machine, and aioice's connectivity checks, mended.

Mended, each with a test that tells when it is no longer needed: loopback is offered, too; ports come from the operator's range; a
datagram that is empty, too long or malformed ends nothing; what waits before the call is connected is bounded; the connection is
up when the client nominates, not up to 20 ms later; afterwards sound follows the client to whatever pair it nominates; names are
never resolved for a client.
"""

import asyncio
import contextlib
import ipaddress
import logging
from collections import deque
from collections.abc import Callable, Iterable

from aioice import Candidate, Connection, stun
from aioice.ice import ICE_COMPLETED, CandidatePair, StunProtocol, relayed_candidate, server_reflexive_candidate

from realtime.webrtc.candidates import RemoteCandidate
from realtime.webrtc.ice_port import MALFORMED, Port, host_candidate, local_addresses
from realtime.webrtc.offer import Offer
from realtime.webrtc.settings import IceServer, WebRtcSettings
from realtime.webrtc.udp_ports import bind_one_port

log = logging.getLogger(__name__)

MAX_WAITING_DATAGRAMS = 512
"""Received and not yet read. Overflow policy: drop, as networks do. Only before the handshake can so many wait."""
MAX_REMOTE_CANDIDATES = 32
"""Addresses from which a client may check: each costs a task and a retransmission timer. Overflow policy: a new one from which it
checks takes the place of the oldest, one that it only names is left out."""
MAX_QUESTIONS = 32
"""Whose answers count. Overflow policy: the oldest is forgotten."""
CHECK_INTERVAL_S = 0.02
SERVER_TIMEOUT_S = 2.0
"""A STUN or TURN server that has not answered by then is left out."""
CLOSE_TIMEOUT_S = 1.0


class IceLink(Connection):
    """The controlled side of ICE (RFC 8445). `gather_candidates`, then `connect`; `close` in any state. `on_sign` is called at
    each check and each answer to `ask` that only the client can have sent."""

    def __init__(self, settings: WebRtcSettings, offer: Offer, on_sign: Callable[[], None]) -> None:
        super().__init__(ice_controlling=offer.ice_lite)
        self.remote_username = offer.ice_username
        self.remote_password = offer.ice_password
        self.remote_is_lite = offer.ice_lite
        self._settings = settings
        self._offered = offer.candidates
        self._on_sign = on_sign
        self._key = offer.ice_password.encode()
        self._questions: deque[bytes] = deque(maxlen=MAX_QUESTIONS)
        self._places: set[tuple[str, int]] = set()
        self._new_pairs = asyncio.Event()

    async def gather_candidates(self) -> None:
        """Raises Refusal (503) when no port is free."""
        await self._open_sockets()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVER_TIMEOUT_S), asyncio.TaskGroup() as tasks:
                for server in self._settings.ice_servers:
                    tasks.create_task(self._ask(server))
        self._local_candidates_end = True
        await self.add_candidates(self._offered)

    async def add_candidates(self, candidates: Iterable[RemoteCandidate]) -> None:
        """Addresses at which the client says it is, before or after the connection is up (trickle ICE, RFC 8838)."""
        for remote in candidates:
            if len(self._remote_candidates) < MAX_REMOTE_CANDIDATES:
                await self.add_remote_candidate(_candidate(remote))
        self._new_pairs.set()
        if self._check_list_done:
            for pair in self._check_list:
                if pair.state == CandidatePair.State.FROZEN:
                    self.check_start_task(pair)

    def announced_candidates(self) -> list[Candidate]:
        """What the answer names. Announced addresses stand in for this machine's own, which all have the same port."""
        announced = self._settings.announced_addresses
        if not announced:
            return self.local_candidates
        stand_ins = [host_candidate(address, self._local_candidates[0].port, place) for place, address in enumerate(announced)]
        return stand_ins + [candidate for candidate in self._local_candidates if candidate.type != "host"]

    async def connect(self) -> None:
        """Returns once the client has nominated a pair of addresses, however long its checks take. Raises ConnectionError."""
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
            self._drop_pairs([pair for pair in self._check_list if pair.task is not None])
        if outcome != ICE_COMPLETED:
            raise ConnectionError("no pair of addresses works")

    def ask(self) -> None:
        """Whether the client is still there: a check of the pair in use."""
        for pair in self._nominated.values():
            question = self.build_request(pair, nominate=False)
            question.add_message_integrity(self._key)
            self._questions.append(question.transaction_id)
            pair.protocol.send_stun(question, pair.remote_addr)

    def answered(self, answer: stun.Message) -> None:
        if answer.transaction_id in self._questions and answer.check_message_integrity(self._key):
            self._questions.clear()
            self._on_sign()

    def is_known(self, address: tuple[str, int]) -> bool:
        return address in self._places

    async def close(self) -> None:
        """Bounded: a socket that cannot be flushed is dropped, and so is a relay that does not answer."""
        ports = [protocol for protocol in self._protocols if isinstance(protocol, Port)]
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await super().close()
        except TimeoutError:
            for port in ports:
                port.abort()

    def check_incoming(self, message: stun.Message, addr: tuple[str, int], protocol: StunProtocol) -> None:
        """Authenticated: the client can be reached there."""
        self._on_sign()
        places = {(candidate.host, candidate.port) for candidate in self._remote_candidates}
        if addr not in places and len(places) >= MAX_REMOTE_CANDIDATES:
            self._forget_oldest()
        self._places.add(addr)
        super().check_incoming(message, addr, protocol)

    def check_complete(self, pair: CandidatePair) -> None:
        """The pair that was nominated last is in use. Without this an older nomination whose check takes longer would win."""
        if pair.state == CandidatePair.State.SUCCEEDED:
            self._places.add(pair.remote_addr)
        if pair.nominated:
            for other in self._check_list:
                other.nominated = other.remote_nominated = other is pair
        super().check_complete(pair)

    def data_received(self, data: bytes, component: int) -> None:
        if self._queue.qsize() < MAX_WAITING_DATAGRAMS:
            super().data_received(data, component)

    async def _open_sockets(self) -> None:
        sockets = bind_one_port(local_addresses(), self._settings.udp_ports)
        loop = asyncio.get_running_loop()
        try:
            for place, bound in enumerate(list(sockets)):
                host, port = bound.getsockname()[:2]
                _, protocol = await loop.create_datagram_endpoint(lambda: Port(self, self), sock=bound)
                sockets.remove(bound)
                protocol.local_candidate = host_candidate(host, port, place)
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
        except (OSError, stun.TransactionError, *MALFORMED) as wrong:
            log.warning("%s gives no candidate: %r", server.url, wrong)

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
            protocol_factory=lambda: Port(self, self),
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
        unchecked = (CandidatePair.State.WAITING, CandidatePair.State.FROZEN)
        while True:
            self._new_pairs.clear()
            while any(pair.state in unchecked for pair in self._check_list):
                self._check_periodic()
                await asyncio.sleep(CHECK_INTERVAL_S)
            await self._new_pairs.wait()

    def _forget_oldest(self) -> None:
        in_use = [pair.remote_candidate for pair in self._nominated.values()]
        oldest = next(candidate for candidate in self._remote_candidates if candidate not in in_use)
        self._remote_candidates.remove(oldest)
        self._places.discard((oldest.host, oldest.port))
        self._drop_pairs([pair for pair in self._check_list if pair.remote_candidate is oldest])

    def _drop_pairs(self, pairs: Iterable[CandidatePair]) -> None:
        """A later check of the client makes them anew. Left in the list, a check that was broken off could not be repeated."""
        for pair in pairs:
            if pair.task is not None:
                pair.task.cancel()
            self._check_list.remove(pair)


def _candidate(remote: RemoteCandidate) -> Candidate:
    return Candidate(
        foundation=remote.foundation,
        component=1,
        transport="udp",
        priority=remote.priority,
        host=remote.address,
        port=remote.port,
        type=remote.type,
    )
