"""Where a client says that it can be reached: ICE candidates as they stand in SDP (RFC 8839, section 5.1)."""

import ipaddress
import re
from collections.abc import Iterable

import msgspec

MAX_CANDIDATES = 8
"""Taken of a message. More are not worth their checks: the client finds this server by the answer, and then its own checks tell
where it is."""
_TYPES = {"host", "srflx", "prflx", "relay"}
_NUMBER = re.compile(r"[0-9]{1,10}")


class RemoteCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A UDP address at which the client may be, always an IP address: no name is ever resolved for a client."""

    foundation: str
    priority: int
    address: str
    port: int
    type: str


def read_candidates(values: Iterable[str]) -> tuple[RemoteCandidate, ...]:
    """Those that can be used of the values of a=candidate; the rest is left out."""
    found: dict[tuple[str, int], RemoteCandidate] = {}
    for value in values:
        candidate = _candidate(value.split())
        if candidate is not None and len(found) < MAX_CANDIDATES:
            found.setdefault((candidate.address, candidate.port), candidate)
    return tuple(found.values())


def _candidate(words: list[str]) -> RemoteCandidate | None:
    """`foundation component transport priority address port typ type …`"""
    if len(words) < 8 or words[1] != "1" or words[2].lower() != "udp" or words[6] != "typ" or words[7] not in _TYPES:
        return None
    if not (_NUMBER.fullmatch(words[3]) and _NUMBER.fullmatch(words[5]) and len(words[0]) <= 32):
        return None
    priority, port, address = int(words[3]), int(words[5]), _address(words[4])
    if address is None or not 0 < port < 65_536 or not 0 < priority < 1 << 32:
        return None
    return RemoteCandidate(foundation=words[0], priority=priority, address=address, port=port, type=words[7])


def _address(text: str) -> str | None:
    """A unicast IP address that can be sent to as it stands; None for names."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    unusable = (
        address.is_multicast
        or address.is_unspecified
        or address.is_link_local
        or (address.is_reserved and not address.is_loopback)
    )
    return None if unusable or "%" in text else str(address)
