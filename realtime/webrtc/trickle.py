"""What a client tells about its network after its offer: `application/trickle-ice-sdpfrag` (RFC 8840, RFC 9725 section 4.3)."""

import msgspec

from realtime.errors import Refusal, shown
from realtime.webrtc.candidates import RemoteCandidate, read_candidates

SHORTEST_WORDS = 8
"""Of an a=candidate (RFC 8839, section 5.1)."""


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    candidates: tuple[RemoteCandidate, ...]
    ice_usernames: frozenset[str]
    """Of the ICE session that the client means; empty: the one there is."""


def read_fragment(body: bytes) -> Fragment:
    """Names, TCP and other candidates that are of no use are left out, and the end of candidates tells nothing new: the client's
    own checks show where it is. Raises Refusal (400)."""
    lines = [line for line in map(str.strip, _text(body).split("\n")) if line]
    if not lines:
        raise _wrong("body", "lines such as a=candidate:…", "nothing")
    candidates, usernames = list[str](), set[str]()
    for line in lines:
        name, _, value = line.partition(":")
        if not line.startswith(("a=", "m=")):
            raise _wrong("body", "lines that begin with a= or m=", shown(line))
        if name == "a=candidate" and value:
            candidates.append(value)
        elif name == "a=ice-ufrag":
            usernames.add(value)
    for value in candidates:
        if len(value.split()) < SHORTEST_WORDS:
            raise _wrong("a=candidate", "foundation component transport priority address port typ type", shown(value))
    return Fragment(candidates=read_candidates(candidates), ice_usernames=frozenset(usernames))


def check_session(fragment: Fragment, ice_username: str) -> None:
    """Raises Refusal (422) for an ICE restart. It names no certificate, so that no fresh peer could answer it safely."""
    if fragment.ice_usernames - {ice_username}:
        message = (
            "a=ice-ufrag: expected that of the call's offer, got another; a call is not restarted: post a new offer to its "
            "session, to POST /v1/realtime/calls?resume=<token>"
        )
        raise Refusal(message, status=422, code="ice_restart", field="a=ice-ufrag")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as broken:
        raise _wrong("body", "text in UTF-8", "other bytes") from broken


def _wrong(field: str, expected: str, got: str) -> Refusal:
    return Refusal(f"{field}: expected {expected}, got {got}", code="invalid_fragment", field=field)
