"""The settings that have no effect on a job, each with the reason. A job logs them when it starts.

Some keys of a configuration have no effect on any job, such as Flink's keys without a counterpart. The environment
finds them (`unused_keys`). The effect of other settings depends on the job, so these are found in its compiled plan.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.settings import checkpoint_config, pipeline_options
from opchain.compiler.settings.job_settings import JobSettings
from opchain.compiler.settings.settings_reader import (
    OPERATOR_PREFIX,
    PREFIXES_OF_MAPS,
    flink_keys,
    key_of,
    known_keys,
)
from opchain.runtime.configuration.options import ConfigOption
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.compiler.graph.plan import Program
    from opchain.runtime.configuration.configuration import Configuration

_OF_BATCH = ("scheduler", "auto_parallelism", "batch_shuffle_mode")
_RECEIVERS = ("prometheus_textfile", "otlp_endpoint")
_OF_CODE = ("inline_functions", "rules_left_out")
_OF_CHECKPOINTS = ("checkpoint_retention", "retained_checkpoints", "allow_non_restored_state")
_OF_SPARK = ("python_executable", "jars", "classpaths")

CHANGE_THE_EPOCHS = ("restore_from", "allow_non_restored_state", "trigger")
"""Settings of epochs that decide what a job reads and emits. Without epochs, a job must not ignore them."""
_OF_EPOCHS = (
    "checkpoint_dir",
    "checkpoint_key_file",
    "checkpoint_interval_ms",
    "checkpoint_min_pause_ms",
    "checkpoint_timeout_ms",
    "checkpoint_retention",
    "savepoint_directory",
    "retained_checkpoints",
    "tolerable_checkpoint_failures",
    "record_epochs",
    "accept_duplicates",
    "progress_log",
    "target_epoch_ms",
)

_NOTHING_IN_FLIGHT = "nothing is in flight at the end of an epoch"
_BY_PICKLE = "records are sent as fields or as pickles"

_WHY = {
    "execution.checkpointing.mode": "checkpoints are exactly once",
    "execution.checkpointing.max-concurrent-checkpoints": "opchain runs one checkpoint at a time",
    "execution.checkpointing.unaligned.enabled": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.unaligned.forced": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.aligned-checkpoint-timeout": _NOTHING_IN_FLIGHT,
    "execution.checkpointing.snapshot-compression": "state files are not compressed",
    "pipeline.force-kryo": _BY_PICKLE,
    "pipeline.force-avro": _BY_PICKLE,
    "pipeline.closure-cleaner-level": "Python functions are pickled without a closure cleaner",
    "state.changelog.enabled": "checkpoints are incremental",
    "task.cancellation.interval": "Spark cancels tasks",
    "task.cancellation.timeout": "Spark cancels tasks",
}
"""Reasons for the settings that have methods here."""

_FLINKS = (
    *("akka.", "blob.", "classloader.", "client.", "cluster.", "env.", "execution.", "fs."),
    *("heartbeat.", "high-availability", "historyserver.", "io.", "jobmanager.", "jobstore."),
    *("kubernetes.", "metrics.", "parallelism.", "pekko.", "pipeline.", "process.", "python."),
    *(
        "gs.",
        "queryable-state.",
        "resourcemanager.",
        "rest.",
        "restart-strategy",
        "s3.",
        "security.",
    ),
    "slot",
    *("sql", "state.", "table.", "task.", "taskmanager.", "traces.", "web.", "yarn.", "zookeeper."),
)
"""Prefixes of Flink's keys. Keys with other prefixes belong to the program."""


_BELONGS_TO = (
    ("restart-strategy.fixed-delay.", "restart_strategy", "fixed"),
    ("restart-strategy.failure-rate.", "restart_strategy", "failure"),
    ("restart-strategy.exponential-delay.", "restart_strategy", "exponential"),
    ("state.backend.rocksdb.localdir", "state_backend", "rocksdb"),
    ("opchain.openlineage.namespace", "openlineage_url", ""),
)
"""Keys that have an effect only if another setting, given by its field, has a value with this beginning."""


def keys_without_counterpart(configuration: Configuration) -> tuple[str, ...]:
    """Flink's keys that are set to a value other than their default but have no effect, each with the reason."""
    options, known = declared_options(), known_keys()
    found = []
    for key in sorted(configuration.key_set()):
        is_known = key in known or key.startswith((_JOB_PARAMETERS, OPERATOR_PREFIX))
        is_flinks = key in flink_keys() or key.startswith((*_FLINKS, *PREFIXES_OF_MAPS))
        if is_known or not is_flinks:
            continue
        option = options.get(key)
        if option is not None and configuration.get(option) == option.default:
            continue
        found.append(f"{key} ({_WHY.get(key, 'it has no counterpart here')})")
    return tuple(found)


def unused_keys(configuration: Configuration, settings: JobSettings) -> tuple[str, ...]:
    """Keys without a counterpart, and keys that another setting would have to choose, each with the reason."""
    found = []
    for key in sorted(configuration.key_set()):
        for prefix, name, beginning in _BELONGS_TO:
            chosen = getattr(settings, name)
            is_chosen = chosen is not None and chosen.startswith(beginning)
            if key.startswith(prefix) and not is_chosen:
                found.append(f"{key} ({key_of(name)} is {chosen or 'not set'})")
    return (*keys_without_counterpart(configuration), *found)


_JOB_PARAMETERS = "pipeline.global-job-parameters."


@cache
def declared_options() -> dict[str, ConfigOption[Any]]:
    """The options, by key, that have a method of the environment or of its configuration objects."""
    return {
        option.key: option
        for module in (pipeline_options, checkpoint_config)
        for option in vars(module).values()
        if isinstance(option, ConfigOption)
    }


def changed(settings: JobSettings, names: Iterable[str]) -> list[str]:
    """`key = value` for each of the named settings that differs from its default."""
    return [
        f"{key_of(name)} = {getattr(settings, name)}"
        for name in names
        if getattr(settings, name) != JobSettings.model_fields[name].default
    ]


def set_for_epochs(program: Program) -> list[str]:
    """What a program sets that has an effect only in epochs, and changes no result."""
    listeners = ["add_epoch_listener"] if program.epoch_listeners else []
    return changed(program.settings, _OF_EPOCHS) + listeners


def ineffective_settings(plan: Plan) -> list[str]:
    """Each setting without effect on this job, with the reason in parentheses."""
    found = [
        f"{text} ({why})"
        for name, why in _of_the_job(plan)
        for text in changed(plan.program.settings, [name])
    ]
    settings = plan.program.settings
    for_epochs = set_for_epochs(plan.program) + changed(settings, CHANGE_THE_EPOCHS)
    unused = [] if _has_epochs(plan) else for_epochs
    return [
        *plan.program.unused_keys,
        *found,
        *(
            f"{text} (the job is bounded, so it has no epochs and no checkpoints)"
            for text in unused
        ),
        *_of_operators(plan),
        *_of_slots(plan),
    ]


def _has_epochs(plan: Plan) -> bool:
    """Whether a job is unbounded, or starts from state or writes it. `runs_in_epochs` warns of unbounded jobs."""
    settings, job = plan.program.settings, required(plan.job_program)
    is_live = settings.target == "local" and job.running_sources
    return bool(
        job.endless_sources or is_live or changed(settings, ("restore_from", "savepoint_at_end"))
    )


def _of_the_job(plan: Plan) -> Iterator[tuple[str, str]]:
    settings, is_batch = plan.program.settings, required(plan.job_graph).is_batch
    is_unbounded = bool(required(plan.job_program).endless_sources)
    if settings.target == "local":
        yield from (
            (name, "the job runs in this process, with its interpreter and without Java")
            for name in _OF_SPARK
        )
    if not is_batch:
        yield from ((name, "only jobs in batch mode use it") for name in _OF_BATCH)
    else:
        yield (
            "batch_shuffle_mode",
            "it changes the plan, but data is always exchanged by blocking shuffles",
        )
        yield "state_backend", "in batch mode, state is in memory"
        if not required(plan.job_graph).is_dynamic:
            yield "auto_parallelism", f"jobmanager.scheduler is {settings.scheduler}"
    if not _times_out(plan):
        yield "table_idle_timeout_ms", "the job reads no table with a watermark"
    if not any(getattr(settings, name) for name in _RECEIVERS) and not settings.spark_metrics:
        yield "metrics_interval_ms", "nothing receives metrics: set opchain.metrics.otlp.endpoint"
    if settings.auto_watermark_interval_ms and not (settings.target == "local" and is_unbounded):
        yield "auto_watermark_interval_ms", "a watermark follows each batch; only 0 changes that"
    if not _waits_for_buffers(plan, settings.buffer_timeout_ms):
        yield "buffer_timeout_ms", "only the records decide when a buffer is sent"
    if not settings.generate_code:
        yield from ((name, "opchain.codegen.enabled is false") for name in _OF_CODE)
    if is_unbounded and settings.checkpoint_dir is None and settings.restore_from is None:
        yield from ((name, "execution.checkpointing.dir is not set") for name in _OF_CHECKPOINTS)


def _times_out(plan: Plan) -> bool:
    """Whether a source has the idle timeout of tables."""
    timeout_ms = plan.program.settings.table_idle_timeout_ms
    strategies = (
        getattr(node.spec, "watermark_strategy", None)
        for node in required(plan.stream_graph).nodes()
    )
    return any(
        strategy is not None
        and strategy.makes_watermarks
        and strategy.idle_timeout == Duration.of_millis(timeout_ms)
        for strategy in strategies
    )


def _waits_for_buffers(plan: Plan, timeout_ms: int) -> bool:
    """Whether a buffer timeout changes when records are sent."""
    job = required(plan.job_program)
    is_live = plan.program.settings.target == "local" and bool(job.running_sources)
    return is_live or timeout_ms == 0


def _of_operators(plan: Plan) -> Iterator[str]:
    of_the_job = plan.program.settings.max_parallelism
    for vertex in required(plan.job_graph).vertices:
        for operator in vertex.operators:
            node = operator.node
            where = f"of {node.label}"
            is_head = operator is vertex.head
            if not is_head and node.max_parallelism not in (
                UNSET,
                of_the_job,
                vertex.max_parallelism,
            ):
                yield (
                    f"set_max_parallelism({node.max_parallelism}) {where} (it is chained: the max parallelism of "
                    f"'{vertex.head.node.name}' applies, {_or_derived(vertex.max_parallelism)})"
                )
            timeout = node.buffer_timeout
            if timeout is not None and not _waits_for_buffers(plan, timeout):
                yield (
                    f"set_buffer_timeout({timeout}) {where} (only the records decide when a buffer is sent)"
                )


def _or_derived(max_parallelism: int) -> Any:
    return "derived from its parallelism" if max_parallelism == UNSET else max_parallelism


def _of_slots(plan: Plan) -> Iterator[str]:
    if plan.program.settings.target == "local":
        for name, group in sorted(plan.program.slot_group_resources.items()):
            if group.get_cpu_cores() is not None:
                yield f"the resources of slot sharing group '{name}' (the job runs in this process)"
