"""What a client secret fixes of the sessions that are opened with it."""

import msgspec

from realtime.openai_realtime.session_patch import SessionPatch
from sessions.identity.principal import Principal

_decoder = msgspec.json.Decoder(SessionPatch)
NOTHING = SessionPatch()


def written(patch: SessionPatch) -> bytes:
    """As a secret carries it."""
    return b"" if patch == NOTHING else msgspec.json.encode(patch)


def fixed_by(principal: Principal) -> SessionPatch:
    """NOTHING, where it is no secret's. Its signature has been checked, so it is of our making."""
    return _decoder.decode(principal.session) if principal.session else NOTHING
