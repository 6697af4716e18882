"""What a launcher tells a worker: which stages of which pipeline it runs, and where it listens.

Handed over as one line of JSON on stdin, or as a file named on the command line. stdin stays open either way: its end
means that the launcher has died, and the worker then ends itself and its process group.
"""

import math
from typing import Annotated, Literal, TypeAlias

import msgspec

from engines.diffusion.scheduling.shares import RESERVED
from engines.logs import LogStyle
from engines.site import Carrier

Option: TypeAlias = bool | int | float | str | list[object] | dict[str, object] | None
"""Of a model, as its deployment sets it: what YAML and JSON both have."""

DEFAULT_RING_MB = 32
DEFAULT_HANG_LIMIT_S = 30.0


class BatchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step takes at most `max` inputs. It waits for `min` of them, but never longer than `max_wait_ms`."""

    max: int = 8
    min: int = 1
    max_wait_ms: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.max:
            raise ValueError(f"batch: expected 1 ≤ min ≤ max, got min={self.min}, max={self.max}")
        if not 0 <= self.max_wait_ms < math.inf:
            raise ValueError(f"batch: expected a finite max_wait_ms ≥ 0, got {self.max_wait_ms}")


Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]
LONGEST_WINDOW_MS = 60_000
WindowMs: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WINDOW_MS)]


class Shares(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a DIFFUSION engine's time that each class is sure of while it has work. What nobody is sure of, or does not
    use, goes to whoever has the least time to spare."""

    control: Share = RESERVED["control"]
    interactive: Share = RESERVED["interactive"]
    batch: Share = RESERVED["batch"]

    def __post_init__(self) -> None:
        total = self.control + self.interactive + self.batch
        if total > 1 + 1e-9:
            raise ValueError(f"shares: expected at most 1 for all classes together, got {total:g}")


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a DIFFUSION engine chooses what shares the next call, which has at most `batch.max` rows.

    `steps`: anew before each call. `waves`: requests that begin together, and stay so to their ends; a wave waits `window_ms` for
    more of its kind, but no longer than until nobody has come for `stable_ms`.
    """

    policy: Literal["steps", "waves"] = "steps"
    shares: Shares = Shares()
    window_ms: WindowMs = 20.0
    stable_ms: WindowMs = 5.0


class StageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage: `model` is a key of engines/models/registry.py, `directory` holds its weights, `options` are the model's own.

    `slots` is how many requests may be open at once. A model call that takes longer than `hang_limit_s` hangs. `schedule` is read
    by DIFFUSION engines only.
    """

    stage: str
    model: str
    directory: str
    slots: int = 16
    batch: BatchSpec = BatchSpec()
    options: dict[str, Option] = {}
    hang_limit_s: float = DEFAULT_HANG_LIMIT_S
    schedule: ScheduleSpec = ScheduleSpec()

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"stage {self.stage!r}: expected slots ≥ 1, got {self.slots}")


class WorkerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`socket` is the path of the Unix socket (its folder is made with mode 0700); `pipeline` is a name in
    engines/pipelines/registry.py; `threads` is OMP_NUM_THREADS of the worker.

    `device` (`cpu` or `cuda:N`) is the only one that its libraries see; None: all that there are. `memory_gb` (10⁹ bytes) is what
    the process and those that its models start may hold; None: no limit. `ring_mb` (2²⁰ bytes) is the size of the arena of its
    shared-memory connector. `full_edges` are those of the pipeline, as `source->target`, that are not chunked.

    `listen_fd` is an inherited descriptor of a socket that the launcher has bound to `socket` and listens on already, so that
    connecting never races with the start; None: the worker binds and listens itself.

    `listen` (`tcp://host:port`) is listened on instead of `socket`, for control and payloads; others reach it as `public`. The
    secret that they must know lies in `secret_file`. Payloads go to other hosts by the connector `between_hosts`.
    `is_supervised`: stdin is the lifeline to the launcher. `is_shared`: other gateways than the launcher's connect to it; to one
    that is not supervised they always do."""

    name: str
    pipeline: str
    socket: str
    stages: tuple[StageSpec, ...]
    threads: int = 1
    device: str | None = None
    memory_gb: float | None = None
    ring_mb: int = DEFAULT_RING_MB
    full_edges: tuple[str, ...] = ()
    logs: LogStyle = LogStyle()
    listen_fd: int | None = None
    listen: str = ""
    public: str = ""
    secret_file: str = ""
    between_hosts: Carrier = Carrier.TCP
    is_supervised: bool = True
    is_shared: bool = False


decoder = msgspec.json.Decoder(WorkerSpec)
encoder = msgspec.json.Encoder()
