"""What a launcher tells a worker: which stages of which pipeline it runs, and where it listens.

Handed over as one line of JSON on stdin, or as a file named on the command line. stdin stays open either way: its end
means that the launcher has died, and the worker then ends itself and its process group.
"""

import math

import msgspec

from engines.logs import LogStyle
from engines.site import Carrier

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


class StageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage: `model` is a key of engines/models/registry.py, `directory` holds its weights, `options` are the model's own.

    `slots` is how many requests may be open at once. A model call that takes longer than `hang_limit_s` hangs.
    """

    stage: str
    model: str
    directory: str
    slots: int = 16
    batch: BatchSpec = BatchSpec()
    options: dict[str, bool | int | float | str] = {}
    hang_limit_s: float = DEFAULT_HANG_LIMIT_S

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
