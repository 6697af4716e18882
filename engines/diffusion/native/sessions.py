"""What a model keeps for its sessions, one object for each: opened, forked, taken along, and counted."""

from dataclasses import dataclass
from typing import Generic, cast

import msgspec
import torch
from torch import Tensor

from engines.diffusion.native import Content
from engines.diffusion.native.budget import Budget
from engines.diffusion.native.noise import Source
from engines.diffusion.native.parts import Part, floats, was_written
from engines.models import InvalidInput
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Denoising
from engines.payloads import Payload


@dataclass(slots=True, eq=False)
class Session(Generic[Content]):
    """`jobs` went well so far. `content` is replaced as a whole and never written, so whoever has it can go back to it."""

    wanted: Denoising
    content: Content
    jobs: int = 0

    @property
    def source(self) -> Source:
        """The noise of its next job."""
        return Source(self.wanted.seed, self.wanted.session, self.jobs)


class Written(RuntimeError):
    """A fault of the model's code, in a sentence."""


class Sessions(Generic[Content]):
    """The sessions of one model. `empty` is what each holds at first; all share it, and it is counted from the start on.

    What raises NoRoom has changed nothing.
    """

    def __init__(self, kind: str, empty: Content, limit_bytes: int) -> None:
        self._kind = kind
        self._empty = empty
        self._budget = Budget(limit_bytes)
        self._budget.exchange((), _tensors(empty).values())
        self._open: set[Session[Content]] = set()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def nbytes(self) -> int:
        return self._budget.nbytes

    def open(self, wanted: Denoising) -> Session[Content]:
        return self._opened(Session(wanted, self._empty))

    def fork(self, session: Session[Content], wanted: Denoising) -> Session[Content]:
        """One that goes on where this one is, as it would for the same `wanted`, and that shares its memory until one of them
        changes. A fork that nobody goes on with is a place to come back to. Raises KeyError for one that is not open."""
        self._check_open(session)
        return self._opened(Session(wanted, session.content, session.jobs))

    def check(self, session: Session[Content], content: Content) -> None:
        """Whether the session could hold this. Raises KeyError when it is not open, and TypeError for what is no content."""
        self._check_open(session)
        if type(content) is not type(self._empty):
            raise TypeError(f"content: expected {type(self._empty).__name__}, got {type(content).__name__}")
        for name, part in _parts(self._empty).items():
            if type(got := _parts(content)[name]) is not type(part):
                raise TypeError(f"content.{name}: expected {type(part).__name__}, got {type(got).__name__}")

    def keep(self, session: Session[Content], content: Content) -> None:
        """A job went well, and this is what the session holds from now on. Raises NoRoom, and Written when the model has written
        into what others may share."""
        if was_written(_tensors(session.content).values()):
            raise Written("the model has written into its session's content: it must make new parts instead")
        self._replace(session, content)
        session.jobs += 1

    def reset(self, session: Session[Content]) -> None:
        """Raises KeyError for one that is not open."""
        self._check_open(session)
        self._replace(session, self._empty)
        session.jobs = 0

    def close(self, session: Session[Content]) -> None:
        """Raises KeyError for one that is not open."""
        self._check_open(session)
        self._open.remove(session)
        self._budget.exchange(_tensors(session.content).values(), ())

    def snapshot(self, session: Session[Content]) -> Payload:
        """Each part as float32 [n, *shape] under its name, and how many entries it has seen."""
        parts = _parts(session.content)
        arrays = {name: floats(part.entries()) for name, part in parts.items()}
        seen = {f"{name}_seen": part.seen for name, part in parts.items()}
        return saved(self._kind, arrays, None, jobs=session.jobs, **seen)

    def restore(self, wanted: Denoising, snapshot: Payload) -> Session[Content]:
        """Raises InvalidInput and NoRoom."""
        known = Snapshot(self._kind, snapshot)
        parts = {name: _restored(known, name, part) for name, part in _parts(self._empty).items()}
        content = msgspec.structs.replace(self._empty, **parts)
        return self._opened(Session(wanted, content, known.count("jobs")))

    def _check_open(self, session: Session[Content]) -> None:
        if session not in self._open:
            raise KeyError("session: expected an open one, got one that is closed")

    def _opened(self, session: Session[Content]) -> Session[Content]:
        self._budget.exchange((), _tensors(session.content).values())
        self._open.add(session)
        return session

    def _replace(self, session: Session[Content], content: Content) -> None:
        before, after = _tensors(session.content), _tensors(content)
        # Most stay, and to look at each would cost more than the step with a long history.
        released = [tensor for known, tensor in before.items() if known not in after]
        self._budget.exchange(released, [tensor for known, tensor in after.items() if known not in before])
        session.content = content


def _parts(content: msgspec.Struct) -> dict[str, Part]:
    return cast(dict[str, Part], msgspec.structs.asdict(content))


def _tensors(content: msgspec.Struct) -> dict[int, Tensor]:
    """By identity, each once."""
    return {id(tensor): tensor for part in _parts(content).values() for tensor in part.tensors}


def _restored(known: Snapshot, name: str, part: Part) -> Part:
    entries = torch.as_tensor(known.floats(name, (None, *part.shape)))
    try:
        return part.holding(entries, known.count(f"{name}_seen"))
    except ValueError as wrong:
        if isinstance(wrong, InvalidInput):
            raise
        raise InvalidInput(f"snapshot.{name}: {wrong}") from wrong
