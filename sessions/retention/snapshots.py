"""Sessions at rest: what another node, or this one later, needs to go on with them. What is in it their kind knows."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sessions.retention.sealing import KEY_VARIABLE, NONCE_BYTES, root

log = logging.getLogger(__name__)

FORMAT = 1
IN_STORE = "store"


class Origin(msgspec.Struct, frozen=True):
    """What has made the state of a session: the pipeline of that name, with models and weights that together have this hash."""

    pipeline: str
    model_hash: str


class Binding(StrEnum):
    """Which origins can go on with the state of a kind of session."""

    PIPELINE = "pipeline"
    """All of the same pipeline: what is kept is what was said, and any model can read that."""
    MODELS = "models"
    """Those with the same models and weights: what is kept means nothing to others, or they would go on differently."""


class _Envelope(msgspec.Struct, frozen=True):
    """`profile`: what it can be restored into. `file` None: `content` is the snapshot; else its name in the directory.
    `model_hash` of its origin, also where that does not matter."""

    format: int
    profile: str
    content: bytes
    sealed: bool = False
    file: str | None = None
    model_hash: str = ""


UNREADABLE = "what this server has kept of it cannot be read"
OTHER_MODELS = "it was made by another model or other weights than run here, or by another version of this server"


class NotRestorable(Exception):
    """Of another model or format, sealed with another key, broken, or not there. `told` is what its client may hear of that."""

    def __init__(self, why: str, told: str = UNREADABLE) -> None:
        super().__init__(why)
        self.told = told


_encoder = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(_Envelope)


class Snapshots:
    """Of one kind of session. `place` is `store`, or a directory that all nodes see. `key` None: not encrypted."""

    def __init__(self, origin: Origin, binds: Binding, place: str = IN_STORE, key: str | None = None) -> None:
        self._origin = origin
        self._profile = origin.pipeline if binds is Binding.PIPELINE else f"{origin.pipeline} {origin.model_hash}"
        self._directory = None if place == IN_STORE else Path(place)
        self._cipher = None if key is None else AESGCM(root(key))

    @classmethod
    def of_environment(
        cls, origin: Origin, binds: Binding, place: str, environment: Mapping[str, str] = os.environ
    ) -> "Snapshots":
        return cls(origin, binds, place, environment.get(KEY_VARIABLE) or None)

    async def keep(self, session_id: str, content: bytes, fence: int) -> bytes:
        """What the store is to have of it. In a directory each `fence` has its file: an owner that was stopped, whose word the
        store will not take, spoils nothing of its successor's."""
        if self._cipher is not None:
            nonce = secrets.token_bytes(NONCE_BYTES)
            content = nonce + self._cipher.encrypt(nonce, content, self._bound(session_id))
        sealed = self._cipher is not None
        envelope = _Envelope(FORMAT, self._profile, content, sealed, model_hash=self._origin.model_hash)
        if self._directory is None:
            return _encoder.encode(envelope)
        name = _name(session_id, f"{fence:020}")
        await asyncio.to_thread(_replace, self._directory / name, content)
        await asyncio.to_thread(_delete_superseded, self._directory, session_id, name)
        return _encoder.encode(msgspec.structs.replace(envelope, content=b"", file=name))

    async def read(self, session_id: str, kept: bytes) -> bytes:
        """The content. Raises NotRestorable."""
        try:
            envelope = _envelopes.decode(kept)
        except msgspec.MsgspecError as broken:
            raise NotRestorable(f"the snapshot of {session_id} is broken: {broken}") from broken
        if (envelope.format, envelope.profile) != (FORMAT, self._profile):
            got = f"{envelope.profile!r} in format {envelope.format}"
            expected = f"{self._profile!r} in format {FORMAT}"
            raise NotRestorable(f"the snapshot of {session_id}: expected {expected}, got {got}", OTHER_MODELS)
        if envelope.model_hash != self._origin.model_hash:
            log.info("session %s goes on with other models or weights than it had", session_id)
        content = envelope.content if envelope.file is None else await self._from_file(session_id, envelope.file)
        return self._opened(session_id, content, sealed=envelope.sealed)

    async def forget(self, session_id: str) -> None:
        """Nothing of it is left outside the store."""
        if self._directory is not None:
            await asyncio.to_thread(_delete, self._directory, session_id)

    async def sweep(self, older_than_s: float) -> None:
        """Deletes what is left of sessions that nobody came back to: no session lives so long."""
        if self._directory is not None:
            await asyncio.to_thread(_delete_before, self._directory, time.time() - older_than_s)

    async def _from_file(self, session_id: str, name: str) -> bytes:
        if self._directory is None:
            raise NotRestorable(f"the snapshot of {session_id} is in a directory, and this node has none")
        if not name.startswith(f"{session_id}.") or Path(name).name != name:
            raise NotRestorable(f"the snapshot of {session_id}: expected a file of its own, got {name[:80]!r}")
        try:
            return await asyncio.to_thread((self._directory / name).read_bytes)
        except (OSError, ValueError) as missing:  # NUL in a name
            raise NotRestorable(f"the snapshot of {session_id} cannot be read: {missing}") from missing

    def _opened(self, session_id: str, content: bytes, *, sealed: bool) -> bytes:
        if not sealed:
            return content
        if self._cipher is None:
            raise NotRestorable(f"the snapshot of {session_id} is encrypted, and {KEY_VARIABLE} is not set")
        try:
            return self._cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], self._bound(session_id))
        except (InvalidTag, ValueError) as wrong:
            raise NotRestorable(f"the snapshot of {session_id} was encrypted with another key, or is broken") from wrong

    def _bound(self, session_id: str) -> bytes:
        """A snapshot opens as that of its own session alone."""
        return f"{FORMAT} {self._profile} {session_id}".encode()


def _name(session_id: str, of: str) -> str:
    return f"{session_id}.{of}.snapshot"


def _delete(directory: Path, session_id: str) -> None:
    for file in directory.glob(_name(session_id, "*")):
        file.unlink(missing_ok=True)


def _delete_superseded(directory: Path, session_id: str, name: str) -> None:
    """All before `name` but the last, which the store names until it has been told of this one."""
    before = sorted(file for file in directory.glob(_name(session_id, "*")) if file.name < name)
    for file in before[:-1]:
        file.unlink(missing_ok=True)


def _delete_before(directory: Path, time_s: float) -> None:
    for file in directory.glob(_name("*", "*")):
        with contextlib.suppress(OSError):  # another node is quicker
            if file.stat().st_mtime < time_s:
                file.unlink()


def _replace(file: Path, content: bytes) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{secrets.token_hex(4)}.snapshot")  # also swept, where the node dies before the end
    try:
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(content)
        unfinished.replace(file)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
