"""The operator's choice of what runs where: the sections of a deployment file that concern the stage graph.

`graph_settings` checks everything that can be checked without weights; `with_weights` then finds those.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar, cast

import msgspec

from engines import weights
from engines.configuration import ConfigurationError, WrongValue, names_to_values, record, shown
from engines.diffusers_folder import written_out
from engines.launching.machine import Machine, this_machine
from engines.launching.worker_settings import WorkerSettings, check_fits, check_names, with_device
from engines.messages.to_worker import ServiceClass
from engines.models import registry
from engines.models.registry import Family
from engines.named_object import is_reference
from engines.named_path import named_path
from engines.network.secret_file import secret_file
from engines.pipeline import ExecutionType, Pipeline, PipelineError
from engines.pipelines.registry import PIPELINES, pipeline
from engines.site import Carrier
from engines.weights.manifest import MANIFEST
from engines.worker.spec import DEFAULT_HANG_LIMIT_S, BatchSpec, Option, ScheduleSpec

SECTIONS = ("pipeline", "workers", "stages", "edges", "voices", "queue_ms", "secret_file", "between_hosts", "diffusers")
FAMILIES: Mapping[ExecutionType, Mapping[str, Family]] = {
    ExecutionType.AR: registry.AR,
    ExecutionType.GENERATION: registry.GENERATION,
    ExecutionType.DIFFUSION: registry.DIFFUSION,
}
Settings = TypeVar("Settings")
MOST_AT_ONCE = 65_536
"""Requests of a stage, and inputs of a step."""
Slots: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Milliseconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=3_600_000)]

log = logging.getLogger(__name__)


class StageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`model` is a key of engines/models/registry.py, or `module:Class`, which only its worker imports: it tells when it cannot.

    Its files lie in `directory` (which counts from the deployment's file), or are fetched `weights` of the manifest; some have
    none. `options` are the model's own: engines/models/options.py.

    `slots` is how many requests may be open at once. A call of the model that takes longer than `hang_limit_s` counts as hung.
    `when_missing: skip` runs the rest without this stage. Only a DIFFUSION stage has a `schedule`, and of `batch` the rows.
    """

    model: str
    weights: str = ""
    directory: str = ""
    slots: Slots = 16
    batch: BatchSpec = BatchSpec()
    options: dict[str, Option] = {}
    hang_limit_s: Seconds = DEFAULT_HANG_LIMIT_S
    when_missing: Literal["refuse", "skip"] = "refuse"
    schedule: ScheduleSpec | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.weights and self.directory:
            raise ValueError("weights: expected either weights or directory, got both")


class Chunking(StrEnum):
    """Whether the stage after an edge works on the chunks of the one before, as the pipeline cuts them, or waits for its end."""

    CHUNKED = "chunked"
    FULL = "full"


class VoiceOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`output` is the output of the pipeline that speaks with this voice."""

    output: str


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a request of each class may wait for a slot before it is refused."""

    control: Milliseconds = 50.0
    interactive: Milliseconds = 1_000.0
    batch: Milliseconds = 10_000.0

    def by_class(self) -> Mapping[ServiceClass, float]:
        return {
            ServiceClass.CONTROL: self.control,
            ServiceClass.INTERACTIVE: self.interactive,
            ServiceClass.BATCH: self.batch,
        }


class GraphSettings(msgspec.Struct, frozen=True, kw_only=True):
    pipeline: str
    workers: dict[str, WorkerSettings]
    stages: dict[str, StageSettings]
    voices: dict[str, VoiceOutput]
    queue_ms: QueueLimits = QueueLimits()
    edges: dict[str, Chunking] = {}
    """By their names; those that are not named are chunked."""
    secret_file: str = ""
    """What is shared with workers on other hosts lies there."""
    between_hosts: Carrier = Carrier.TCP
    """What carries payloads to and from them."""

    def record(self) -> Pipeline:
        return pipeline(self.pipeline)

    def run_elsewhere(self) -> set[str]:
        """The stages of workers that somebody else runs."""
        return {stage for worker in self.workers.values() if worker.address for stage in worker.stages}


def graph_settings(file: Path, sections: Mapping[str, object], machine: Machine | None = None) -> GraphSettings:
    """With a device for every worker; `machine` is the one that it must fit on (None: this one). Raises ConfigurationError."""
    machine = machine or this_machine()
    sections = written_out(file, sections)
    name = _pipeline_name(file, sections.get("pipeline"))
    workers = _records(file, "workers", sections, WorkerSettings)
    settings = GraphSettings(
        pipeline=name,
        workers=workers,
        stages=_records(file, "stages", sections, StageSettings),
        edges=_edges(file, pipeline(name), sections),
        voices=_records(file, "voices", sections, VoiceOutput),
        queue_ms=record(file, "queue_ms", sections.get("queue_ms", {}), QueueLimits),
        secret_file=secret_file(file, sections.get("secret_file"), workers),
        between_hosts=_carrier(file, sections.get("between_hosts", Carrier.TCP)),
    )
    executions = {stage.name: stage.execution for stage in settings.record().stages}
    _check_stages(file, settings, executions)
    settings = msgspec.structs.replace(
        settings,
        stages={name: _completed(file, name, stage, executions[name]) for name, stage in settings.stages.items()},
        workers={name: with_device(worker, machine) for name, worker in settings.workers.items()},
    )
    _check_workers(file, settings)
    check_names(file, settings.workers)
    check_fits(file, settings.workers, machine)
    for voice, chosen in settings.voices.items():
        _one_of(file, f"voices.{voice}.output", chosen.output, [output.name for output in settings.record().outputs])
    return settings


def with_weights(settings: GraphSettings) -> GraphSettings:
    """The settings with the `directory` of every stage that runs here found. Stages that may be skipped leave, and with them the
    voices that need them, when their weights are missing. Raises engines.weights.WeightsError for the others."""
    stages: dict[str, StageSettings] = {}
    elsewhere = settings.run_elsewhere()
    for name, stage in settings.stages.items():
        try:
            stages[name] = stage if name in elsewhere else _with_directory(name, stage)
        except weights.WeightsError as missing:
            if stage.when_missing == "refuse":
                raise
            log.warning("stage %s is left out: %s", name, missing)
    return _without_missing(settings, stages)


def _pipeline_name(file: Path, name: object) -> str:
    if not isinstance(name, str):
        raise WrongValue(file, "pipeline", f"one of {', '.join(PIPELINES)}", shown(name))
    if ":" not in name:  # `module:RECORD` is a pipeline that lives elsewhere
        _one_of(file, "pipeline", name, PIPELINES)
    try:
        pipeline(name)
    except PipelineError as wrong:
        raise ConfigurationError(file, str(wrong)) from wrong
    return name


def _records(file: Path, section: str, sections: Mapping[str, object], kind: type[Settings]) -> dict[str, Settings]:
    values = names_to_values(file, section, sections.get(section, {}))
    return {name: record(file, f"{section}.{name}", value, kind) for name, value in values.items()}


def _edges(file: Path, graph: Pipeline, sections: Mapping[str, object]) -> dict[str, Chunking]:
    """Of every edge of the pipeline."""
    chosen = {edge.name: Chunking.CHUNKED for edge in graph.edges}
    for edge, chunking in names_to_values(file, "edges", sections.get("edges", {})).items():
        _one_of(file, f"edges.{edge}", edge, chosen)
        _one_of(file, f"edges.{edge}", chunking, list(Chunking))
        chosen[edge] = Chunking(chunking)
    return chosen


def _carrier(file: Path, value: object) -> Carrier:
    _one_of(file, "between_hosts", value, list(Carrier))
    return Carrier(value)


def _check_stages(file: Path, settings: GraphSettings, executions: Mapping[str, ExecutionType]) -> None:
    if not settings.stages:
        raise WrongValue(file, "stages", f"at least one of {', '.join(executions)}", "none")
    for name, stage in settings.stages.items():
        _one_of(file, f"stages.{name}", name, executions)
        if not is_reference(stage.model):
            _one_of(file, f"stages.{name}.model", stage.model, FAMILIES[executions[name]])
        if not stage.weights and not stage.directory and not _has_no_files(stage):
            raise WrongValue(file, f"stages.{name}.weights", "either weights or directory", "neither")
        if stage.batch.max > MOST_AT_ONCE:
            raise WrongValue(file, f"stages.{name}.batch.max", f"int <= {MOST_AT_ONCE}", shown(stage.batch.max))
        _check_options(file, name, stage)
        _check_schedule(file, name, stage, executions[name])
        if stage.weights:
            _one_of(file, f"stages.{name}.weights", stage.weights, (known.name for known in MANIFEST))


def _check_options(file: Path, name: str, stage: StageSettings) -> None:
    """JSON, in which a worker gets them, has no other numbers."""
    for option, value in _numbers(stage.options):
        if not math.isfinite(value):
            raise WrongValue(file, f"stages.{name}.options{option}", "a finite number", shown(value))


def _numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Those with a point in a value from YAML, and their ways to it."""
    match value:
        case float():
            yield path, value
        case dict():
            for name, one in cast("dict[str, object]", value).items():
                yield from _numbers(one, f"{path}.{name}")
        case list():
            for place, one in enumerate(cast("list[object]", value)):
                yield from _numbers(one, f"{path}[{place}]")
        case _:
            pass


def _check_schedule(file: Path, name: str, stage: StageSettings, execution: ExecutionType) -> None:
    if execution is not ExecutionType.DIFFUSION:
        if stage.schedule is not msgspec.UNSET:
            raise WrongValue(
                file, f"stages.{name}.schedule", "only DIFFUSION stages to have one", f"it for one of type {execution}"
            )
    elif stage.batch.min > 1 or stage.batch.max_wait_ms > 0:
        key = "min" if stage.batch.min > 1 else "max_wait_ms"
        expected = "none in a DIFFUSION stage, which waits as its `schedule` says"
        raise WrongValue(file, f"stages.{name}.batch.{key}", expected, shown(msgspec.structs.asdict(stage.batch)[key]))


def _completed(file: Path, name: str, stage: StageSettings, execution: ExecutionType) -> StageSettings:
    """With every option that its model has, with its schedule, and with `directory` as an absolute path."""
    directory = stage.directory and str(named_path(file, f"stages.{name}.directory", stage.directory).resolve())
    options = stage.options
    if family := _family(stage):
        options = msgspec.structs.asdict(record(file, f"stages.{name}.options", options, family.options))
    schedule = stage.schedule
    if schedule is msgspec.UNSET and execution is ExecutionType.DIFFUSION:
        schedule = ScheduleSpec()
    return msgspec.structs.replace(stage, directory=directory, options=options, schedule=schedule)


def _family(stage: StageSettings) -> Family | None:
    """None for a model that lives elsewhere: nothing is known of its options and files."""
    return next((families[stage.model] for families in FAMILIES.values() if stage.model in families), None)


def _has_no_files(stage: StageSettings) -> bool:
    family = _family(stage)
    return family is not None and not family.files


def _check_workers(file: Path, settings: GraphSettings) -> None:
    homes: dict[str, str] = {}
    for worker, chosen in settings.workers.items():
        for stage in chosen.stages:
            _one_of(file, f"workers.{worker}.stages", stage, settings.stages)
            if stage in homes:
                raise WrongValue(
                    file,
                    f"workers.{worker}.stages",
                    "each stage in one worker",
                    f"{stage!r}, which {homes[stage]!r} runs already",
                )
            homes[stage] = worker
    for stage in settings.stages:
        if stage not in homes:
            raise WrongValue(file, f"stages.{stage}", "a worker that runs it", "none in `workers`")


def _one_of(file: Path, key: str, name: object, known: Iterable[str]) -> None:
    known = list(known)
    if name not in known:
        raise WrongValue(file, key, f"one of {', '.join(known)}", shown(name))


def _with_directory(name: str, stage: StageSettings) -> StageSettings:
    if not stage.weights and not stage.directory:
        return stage
    return msgspec.structs.replace(stage, weights="", directory=str(_directory(name, stage)))


def _directory(name: str, stage: StageSettings) -> Path:
    if stage.weights:
        return weights.directory(stage.weights)
    directory, family = Path(stage.directory), _family(stage)
    if not directory.is_dir():
        raise weights.WeightsError(
            f"stages.{name}.directory: there is no folder {directory}: put the weights there or name another"
        )
    if family and (fault := family.fault(directory)):
        raise weights.WeightsError(
            f"stages.{name}.directory: expected a folder of the model {stage.model}, and {directory} has {fault}"
        )
    return directory


def _without_missing(settings: GraphSettings, stages: dict[str, StageSettings]) -> GraphSettings:
    workers: dict[str, WorkerSettings] = {}
    for name, worker in settings.workers.items():
        if left := tuple(stage for stage in worker.stages if stage in stages):
            workers[name] = msgspec.structs.replace(worker, stages=left)
    voices: dict[str, VoiceOutput] = {}
    for name, voice in settings.voices.items():
        if settings.record().offers(voice.output, stages):
            voices[name] = voice
        else:
            log.warning("voice %s is left out: nothing makes its output %s", name, voice.output)
    return msgspec.structs.replace(settings, workers=workers, stages=stages, voices=voices)
