"""From a program to a running job: compiles it whole, and hands it to Spark or to this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.dataframe_execution import refuse_dataframes
from opchain.compiler.dsl.interception import job_started
from opchain.compiler.graph.plan import made
from opchain.compiler.live_job_settings import check_live_job_settings
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.settings.dependencies_reader import job_dependencies
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.run import log_warnings_only
from opchain.runtime.job.slot_resources import SlotResources

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan, Program
    from opchain.compiler.settings.job_settings import JobSettings
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.spark.streaming.settings import StreamingSettings
    from opchain.runtime.task.vertex_program import JobProgram


def submit(program: Program, *, wait: bool = False) -> JobRun:
    """Starts a job; with `wait`, runs it in this thread to its end.

    Where it runs is `execution.target`: "spark" (the active session, else a new one), or "local" for
    this process.
    """
    log_warnings_only()
    plan = compile_program(program)
    job = made(plan.job_program)
    dependencies = job_dependencies(program)
    is_endless = has_no_end(job)
    if not is_endless:
        _refuse_restoring(program.settings, job.job_name)
    if program.settings.target == "local":
        from opchain.runtime.local.job import local_run  # noqa: PLC0415 - only what is used is loaded

        refuse_dataframes(job, "this one runs in this process (execution.target = local)")
        if is_endless:
            check_live_job_settings(program, job.job_name)
        run = local_run(job, dependencies)
    elif is_endless:
        from opchain.runtime.spark.streaming.streaming_run import streaming_run  # noqa: PLC0415

        run = streaming_run(
            job,
            streaming_settings(program.settings),
            dependencies,
            slot_resources(plan),
            program.epoch_listeners,
        )
    else:
        from opchain.runtime.spark.bounded_job import spark_run  # noqa: PLC0415 - likewise

        run = spark_run(job, dependencies, slot_resources(plan))
    job_started(job.job_name, run, plan)
    return run.run_here() if wait else run.start()


def _refuse_restoring(settings: JobSettings, job_name: str) -> None:
    if settings.restore_from is not None:
        raise UnsupportedFeatureError(
            f"job '{job_name}' ends by itself and keeps no checkpoints, so it cannot start from "
            f"{settings.restore_from} (execution.state-recovery.path, --from): leave that out, or give it sources "
            "without end and opchain.streaming.trigger = available-now"
        )


def has_no_end(job: JobProgram) -> bool:
    """Whether a source of the job never ends."""
    from opchain.runtime.local.live_run import endless_sources  # noqa: PLC0415 - likewise

    return bool(endless_sources(job))


def streaming_settings(settings: JobSettings) -> StreamingSettings:
    """What an unbounded job is run by."""
    from opchain.runtime.spark.streaming.settings import (  # noqa: PLC0415 - likewise
        StreamingSettings,
        Trigger,
    )

    return StreamingSettings(
        checkpoints=settings.checkpoint_dir,
        interval_ms=settings.checkpoint_interval_ms,
        min_pause_ms=settings.checkpoint_min_pause_ms,
        trigger=Trigger(settings.trigger),
        restore_from=settings.restore_from,
        allow_non_restored_state=settings.allow_non_restored_state,
        retained=settings.retained_checkpoints,
        tolerable_failures=settings.tolerable_checkpoint_failures,
        progress_log=settings.progress_log,
        records_epochs=settings.record_epochs,
    )


def slot_resources(plan: Plan) -> tuple[SlotResources | None, ...]:
    """What a slot of each vertex of the job program needs; None where its group names no resources."""
    groups = plan.program.slot_group_resources
    if not groups:
        return ()
    job_graph = made(plan.job_graph)
    names = (
        job_graph.vertex(vertex.vertex_id).slot_sharing_group
        for vertex in made(plan.job_program).vertices
    )
    return tuple(_resources(groups[name]) if name in groups else None for name in names)


def _resources(group: SlotSharingGroup) -> SlotResources | None:
    cpu_cores = group.get_cpu_cores()
    if cpu_cores is None:
        return None
    memories = (group.task_heap_memory, group.task_off_heap_memory, group.managed_memory)
    return SlotResources(
        group.get_name(),
        cpu_cores,
        sum(memory.get_mebi_bytes() for memory in memories if memory is not None),
        group.external_resources,
    )
