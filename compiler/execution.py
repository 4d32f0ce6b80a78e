"""Runs a program: compiles it, and hands the job to Spark or to this process."""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import Plan, Program, required
from opchain.compiler.ineffective_settings import (
    CHANGE_THE_EPOCHS,
    changed,
    ineffective_settings,
    set_for_epochs,
)
from opchain.compiler.interception import job_started
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.settings.job_settings import JobSettings
from opchain.runtime.connectors.arrow_sink import ArrowSink
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.dependencies import CachedFile, JobDependencies, PythonArchive
from opchain.runtime.job.restarts import RestartStrategy
from opchain.runtime.job.run import JobRun, log_warnings_only
from opchain.runtime.program.vertex_program import JobProgram, SlotResources

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.runtime.job.streaming_settings import StreamingSettings
    from opchain.runtime.reporting.reporting import Reporter
    from opchain.runtime.reporting.samples import JobSamples


_LOG = logging.getLogger("opchain.job")


def asks_for_epochs(program: Program) -> bool:
    """Whether anything was set that needs checkpoints or epochs."""
    return bool(set_for_epochs(program) or changed(program.settings, CHANGE_THE_EPOCHS))


def positions_needed_by(job: JobProgram) -> str | None:
    """The name of a source that can only be read between positions; None if there is none."""
    for operator in job.operators:
        if getattr(getattr(operator.spec, "source", None), "needs_positions", False):
            return operator.label
    return None


def runs_in_epochs(program: Program, job: JobProgram) -> bool:
    """Whether an unbounded job in this process runs epoch by epoch, with checkpoints.

    It does if a setting asks for checkpoints or epochs, or a source needs positions, such as a watched folder. All
    sources must have positions. If one has none, a warning names it and the settings that do nothing.

    Raises:
        UnsupportedFeatureError: A source has no positions, but another source or a setting of the program
            needs them.
    """
    from opchain.runtime.epochs.delivered_sources import why_no_epochs  # noqa: PLC0415 - unbounded jobs only

    refused = changed(program.settings, CHANGE_THE_EPOCHS)
    needs = positions_needed_by(job)
    if not asks_for_epochs(program) and needs is None:
        return False
    why = why_no_epochs(job)
    if why is None:
        return True
    if needs is not None:
        raise UnsupportedFeatureError(
            f"job '{job.job_name}': {needs} is read in epochs, and {why}; run them as two jobs"
        )
    here = f"job '{job.job_name}' runs in this process without checkpoints: {why}"
    if refused:
        raise UnsupportedFeatureError(
            f"{here}. These settings need checkpoints: {', '.join(refused)}; read from a source that has positions, or "
            "remove them"
        )
    _LOG.warning(
        "%s. Its state is lost when it ends; without effect: %s",
        here,
        ", ".join(set_for_epochs(program)),
    )
    return False


def dataframe(program: Program) -> Any:
    """The DataFrame of a bounded program whose one end is a DataFrameSink.

    Raises:
        UnsupportedFeatureError: It runs in this process.
    """
    from opchain.runtime.spark.dataframe_output import stream_dataframe  # noqa: PLC0415 - as needed

    plan = compile_program(program)
    job = required(plan.job_program)
    if program.settings.target == "local":
        refuse_dataframes(job)
    return stream_dataframe(job, job_dependencies(program), slot_resources(plan))


def refuse_dataframes(job: JobProgram) -> None:
    """Refuses to run a job in this process if a source or a sink of it is Spark's.

    Raises:
        UnsupportedFeatureError: There is one.
    """
    for operator in job.operators:
        end = getattr(operator.spec, "source", None) or getattr(operator.spec, "sink", None)
        if isinstance(end, (SparkRowSource, ArrowSink)):
            raise UnsupportedFeatureError(
                f"{operator.label} is {end!r}, which only a job on Spark can have, and this one runs in this "
                "process (execution.target = local)"
            )


def submit(program: Program, *, wait: bool = False) -> JobRun:
    """Starts a job; with `wait`, runs it in this thread to its end.

    Where it runs is `execution.target`: "spark" (the active session, else a new one), or "local" for
    this process.
    """
    log_warnings_only()
    plan = compile_program(program)
    job = required(plan.job_program)
    keeps_state = _keeps_state(program.settings, job)
    without_effect = ineffective_settings(plan)
    if without_effect:
        _LOG.warning(
            "job '%s' has settings without effect: %s", job.job_name, "; ".join(without_effect)
        )
    new_run = _run_in_process if program.settings.target == "local" else _run_on_spark
    run = new_run(plan, job, keeps_state=keeps_state)
    _report_on(job, run, program.settings)
    job_started(job.job_name, run, plan)
    return run.run_here() if wait else run.start()


def _run_in_process(plan: Plan, job: JobProgram, *, keeps_state: bool) -> JobRun:
    """The run of a job in this process, which has not started."""
    program = plan.program
    refuse_dataframes(job)
    may_not_end = bool(job.endless_sources or job.running_sources)
    if keeps_state or (may_not_end and runs_in_epochs(program, job)):
        from opchain.runtime.local.epoch_run import local_epoch_run  # noqa: PLC0415 - only what is used is loaded

        return local_epoch_run(
            job,
            streaming_settings(program.settings),
            job_dependencies(program),
            program.epoch_listeners,
            plan_document(plan),
        )
    from opchain.runtime.local.job import local_run  # noqa: PLC0415 - likewise

    return local_run(job, job_dependencies(program), restart_strategy(program.settings))


def _run_on_spark(plan: Plan, job: JobProgram, *, keeps_state: bool) -> JobRun:
    """The run of a job on Spark, which has not started."""
    program = plan.program
    if job.endless_sources or keeps_state:
        from opchain.runtime.spark.streaming.streaming_job import streaming_run  # noqa: PLC0415 - likewise

        return streaming_run(
            job,
            streaming_settings(program.settings),
            job_dependencies(program),
            slot_resources(plan),
            program.epoch_listeners,
            plan_document(plan),
        )
    _look_at_running_sources(job)
    from opchain.runtime.spark.bounded_job import spark_run  # noqa: PLC0415 - likewise

    restarts = restart_strategy(program.settings)
    return spark_run(job, job_dependencies(program), slot_resources(plan), restarts)


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan that checkpoints keep, which `opchain checkpoint diff` compares; without reasons against chaining."""
    from opchain.compiler.plan.from_plan import job_plan  # noqa: PLC0415 - unbounded jobs only

    planned = job_plan(plan)
    document: dict[str, Any] = planned.model_dump(
        mode="json", exclude_defaults=True, exclude={"edges": {"__all__": {"not_chained_because"}}}
    )
    return {"schema_version": planned.schema_version, **document}


def _report_on(job: JobProgram, run: JobRun, settings: JobSettings) -> None:
    """Attaches the reporters that the settings ask for.

    Raises:
        MissingLibraryError: The library of one is not installed.
        UnsupportedFeatureError: An address cannot be used, or metrics of Spark are wanted without Spark.
    """
    makers: list[Callable[[JobSamples], Reporter]] = []
    if settings.prometheus_address is not None:
        from opchain.runtime.reporting.prometheus import PrometheusEndpoint  # noqa: PLC0415 - few jobs need it

        address = settings.prometheus_address
        makers.append(lambda samples: PrometheusEndpoint(address, samples.now))
    if settings.prometheus_textfile is not None:
        from opchain.runtime.reporting.prometheus import PrometheusTextfile  # noqa: PLC0415

        textfile = settings.prometheus_textfile
        makers.append(lambda _: PrometheusTextfile(textfile))
    if settings.otlp_endpoint is not None:
        from opchain.runtime.reporting.open_telemetry import OpenTelemetryReporter  # noqa: PLC0415

        endpoint = settings.otlp_endpoint
        makers.append(lambda _: OpenTelemetryReporter(endpoint, job))
    if settings.openlineage_url is not None:
        from opchain.runtime.reporting.open_lineage import OpenLineageReporter  # noqa: PLC0415

        url, namespace = settings.openlineage_url, settings.openlineage_namespace
        is_streaming = bool(job.endless_sources)
        makers.append(lambda _: OpenLineageReporter(url, namespace, job, is_streaming=is_streaming))
    if settings.spark_metrics:
        if settings.target == "local":
            raise UnsupportedFeatureError(
                "opchain.metrics.spark needs Spark, and this job runs in this process (execution.target = local)"
            )
        from opchain.runtime.spark.spark_metrics import SparkMetrics  # noqa: PLC0415

        makers.append(lambda _: SparkMetrics(job.job_name))
    if makers:
        from opchain.runtime.reporting.reporting import Reporting  # noqa: PLC0415

        Reporting(job, run, makers, settings.metrics_interval_ms / 1000)


def _look_at_running_sources(job: JobProgram) -> None:
    """Refuses unbounded SourceFunctions on Spark, and warns if a SourceFunction may be unbounded.

    Raises:
        UnsupportedFeatureError: A SourceFunction is unbounded.
    """
    for operator in job.running_sources:
        where = operator.label
        if getattr(operator.spec.function, "is_bounded", None) is False:  # type: ignore[attr-defined]
            raise UnsupportedFeatureError(
                f"{where} is a SourceFunction that never ends. It has no positions, from which Spark could resume it: "
                "write an UnboundedSource instead, or run the job in this process (execution.target = local)"
            )
        _LOG.warning(
            "%s is a SourceFunction: on Spark the job emits nothing before run() returns. Set is_bounded on its class: "
            "True if run() returns, and False otherwise, so that Spark refuses it",
            where,
        )


def _keeps_state(settings: JobSettings, job: JobProgram) -> bool:
    """Whether a bounded job runs as one epoch, because it starts from state or writes its state at the end.

    Raises:
        UnsupportedFeatureError: It can't, or the job is unbounded.
    """
    asked = changed(settings, ("restore_from", "savepoint_at_end"))
    if job.endless_sources:
        if settings.savepoint_at_end is not None:
            raise UnsupportedFeatureError(
                f"job '{job.job_name}' never ends, but {asked[-1]} needs the end of its input: remove the setting, "
                "and stop the job with 'opchain stop', which writes a savepoint"
            )
        return False
    if not asked:
        return False
    why, instead = _why_no_state(settings, job)
    if why is None:
        return True
    raise UnsupportedFeatureError(
        f"bounded job '{job.job_name}' {why}, so {' and '.join(asked)} is not possible: {instead}"
    )


def _why_no_state(settings: JobSettings, job: JobProgram) -> tuple[str | None, str]:
    """Why a bounded job can't run as one epoch, and what to do instead; None where it can."""
    if any(vertex.is_batch for vertex in job.vertices):
        return (
            "runs in batch mode, whose operators drop their state when a key ends",
            "set execution.runtime-mode = STREAMING",
        )
    if settings.target == "local":
        from opchain.runtime.epochs.delivered_sources import why_no_epochs  # noqa: PLC0415 - few jobs

        why = why_no_epochs(job)
        if why is not None:
            return f"can't run as an epoch: {why}", "use another source"
    return None, ""


def restart_strategy(settings: JobSettings) -> RestartStrategy:
    """When a job that failed starts again."""
    name = settings.restart_strategy or "none"
    if name.startswith("fixed"):
        return RestartStrategy(
            "fixed-delay", settings.fixed_delay_attempts, settings.fixed_delay_ms
        )
    if name.startswith("failure"):
        return RestartStrategy(
            "failure-rate",
            settings.failure_rate_attempts,
            settings.failure_rate_delay_ms,
            settings.failure_rate_interval_ms,
        )
    if name.startswith("exponential"):
        return RestartStrategy(
            "exponential-delay",
            settings.exponential_delay_attempts,
            settings.exponential_delay_initial_ms,
            most_delay_ms=settings.exponential_delay_most_ms,
            multiplier=settings.exponential_delay_multiplier,
            reset_ms=settings.exponential_delay_reset_ms,
            jitter=settings.exponential_delay_jitter,
        )
    return RestartStrategy()


def streaming_settings(settings: JobSettings) -> StreamingSettings:
    """The settings by which an unbounded job runs."""
    from opchain.runtime.job.streaming_settings import (  # noqa: PLC0415 - likewise
        Retention,
        StreamingSettings,
        Trigger,
    )

    same = {field.name for field in fields(StreamingSettings)} & JobSettings.model_fields.keys()
    converted = {
        "trigger": Trigger(settings.trigger),
        "checkpoint_retention": Retention(settings.checkpoint_retention or "keep"),
        "restarts": restart_strategy(settings),
    }
    return StreamingSettings(**{name: getattr(settings, name) for name in same} | converted)


def slot_resources(plan: Plan) -> tuple[SlotResources | None, ...]:
    """The resources of a slot of each vertex; None if its slot sharing group names none."""
    groups = plan.program.slot_group_resources
    if not groups:
        return ()
    job_graph = required(plan.job_graph)
    names = (
        job_graph.vertex(vertex.vertex_id).slot_sharing_group
        for vertex in required(plan.job_program).vertices
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


def job_dependencies(program: Program) -> JobDependencies:
    """The files that the program has named with `add_python_file`, `register_cached_file` and so on.

    Spark makes cached files executable always, so that the third part of an entry changes nothing.
    """
    settings = program.settings
    return JobDependencies(
        python_files=_parts(settings.python_files, ","),
        archives=tuple(_archive(entry) for entry in _parts(settings.python_archives, ",")),
        python_executable=settings.python_executable,
        requirements=settings.python_requirements,
        jars=_parts(settings.jars, ";") + _parts(settings.classpaths, ";"),
        cached_files=tuple(CachedFile(path, name) for path, name, _ in program.cached_files),
    )


def _parts(text: str | None, separator: str) -> tuple[str, ...]:
    return tuple(part for part in (text or "").split(separator) if part)


def _archive(entry: str) -> PythonArchive:
    """An archive without a folder is unpacked to a folder of its name, as in Flink."""
    path, _, folder = entry.partition("#")
    return PythonArchive(path, folder or path.rstrip("/").rpartition("/")[2])
