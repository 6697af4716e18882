"""What is kept of a session in the store is encrypted, where the operator has given a key."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sessions.store.records import Entry, Kept, Missed, Write

KEY_VARIABLE = "ANTIPHON_SNAPSHOT_KEY"
"""In the environment: any long secret. All nodes need the same."""
NONCE_BYTES = 12
SEALED = b"\0"
"""Begins what is encrypted; neither JSON nor a record in msgpack begins so."""
INPUT = "input"


class Unreadable(Exception):
    """Encrypted with another key, moved from another place, or broken."""

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(f"what was written down of session {session_id} cannot be read: {why}")


class Sealing:
    """`key` None: nothing is encrypted, and what is encrypted cannot be read."""

    def __init__(self, key: str | None = None) -> None:
        self._root = None if key is None else root(key)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> "Sealing":
        return cls(environment.get(KEY_VARIABLE) or None)

    def of(self, session_id: str) -> "Seal":
        """Each session has a key of its own: nonces by chance stay apart among the events of one session, and among those of all
        sessions together they would not for long."""
        if self._root is None:
            return Seal(session_id, None)
        return Seal(session_id, AESGCM(hmac.digest(self._root, f"journal {session_id}".encode(), "sha256")))


class Seal:
    """Of one session. What is sealed opens in its own place alone: an event under its number, an answer under its event id."""

    def __init__(self, session_id: str, cipher: AESGCM | None) -> None:
        self._session_id = session_id
        self._cipher = cipher

    def write(self, write: Write) -> Write:
        """Its snapshot is sealed already, by whoever made it."""
        if self._cipher is None:
            return write
        return msgspec.structs.replace(
            write,
            events=tuple(Entry(each.seq, self._sealed(each.event, _event(each.seq))) for each in write.events),
            inputs=tuple(self._sealed(each, INPUT) for each in write.inputs),
            results={event_id: self._sealed(each, _result(event_id)) for event_id, each in write.results.items()},
        )

    def missed(self, missed: Missed) -> Missed:
        """Raises Unreadable, as do the others."""
        events = tuple(Entry(each.seq, self._opened(each.event, _event(each.seq))) for each in missed.events)
        return Missed(events, missed.complete)

    def kept(self, kept: Kept) -> Kept:
        return Kept(kept.snapshot, tuple(self._opened(each, INPUT) for each in kept.inputs))

    def result(self, event_id: str, result: bytes) -> bytes:
        return self._opened(result, _result(event_id))

    def _sealed(self, content: bytes, place: str) -> bytes:
        if self._cipher is None:
            return content
        nonce = secrets.token_bytes(NONCE_BYTES)
        return SEALED + nonce + self._cipher.encrypt(nonce, content, place.encode())

    def _opened(self, content: bytes, place: str) -> bytes:
        """What was written without a key is taken as it is."""
        if not content.startswith(SEALED):
            return content
        if self._cipher is None:
            raise Unreadable(self._session_id, f"it is encrypted, and {KEY_VARIABLE} is not set")
        nonce, sealed = content[len(SEALED) :][:NONCE_BYTES], content[len(SEALED) + NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, sealed, place.encode())
        except (InvalidTag, ValueError) as wrong:
            raise Unreadable(self._session_id, "it was encrypted with another key, or is broken") from wrong


def root(key: str) -> bytes:
    """The AES key that an operator's secret stands for."""
    return hashlib.sha256(key.encode()).digest()


def _event(seq: int) -> str:
    return f"event {seq}"


def _result(event_id: str) -> str:
    return f"result {event_id}"
