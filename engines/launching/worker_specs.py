"""What the workers of a deployment are told: one spec for each process."""

import msgspec

from engines.deployment import Chunking, GraphSettings, StageSettings
from engines.launching.worker_settings import WorkerSettings, process_names
from engines.logs import LogStyle
from engines.worker.spec import ScheduleSpec, StageSpec, WorkerSpec


def worker_specs(settings: GraphSettings, logs: LogStyle) -> list[WorkerSpec]:
    """Of those that run here: replicas are processes of their own. The sockets have no place yet."""
    return [
        _worker_spec(name, worker, settings, logs)
        for role, worker in settings.workers.items()
        if not worker.address
        for name in process_names(role, worker)
    ]


def _worker_spec(name: str, worker: WorkerSettings, settings: GraphSettings, logs: LogStyle) -> WorkerSpec:
    return WorkerSpec(
        name=name,
        pipeline=settings.pipeline,
        socket="",
        stages=tuple(_stage_spec(stage, settings.stages[stage]) for stage in worker.stages),
        threads=worker.threads,
        device=worker.device,
        memory_gb=worker.memory_gb,
        ring_mb=worker.ring_mb,
        full_edges=tuple(name for name, chunking in settings.edges.items() if chunking is Chunking.FULL),
        logs=logs,
        secret_file=settings.secret_file,
        between_hosts=settings.between_hosts,
    )


def _stage_spec(name: str, stage: StageSettings) -> StageSpec:
    return StageSpec(
        stage=name,
        model=stage.model,
        directory=stage.directory,
        slots=stage.slots,
        batch=stage.batch,
        options=stage.options,
        hang_limit_s=stage.hang_limit_s,
        schedule=ScheduleSpec() if stage.schedule is msgspec.UNSET else stage.schedule,
    )
