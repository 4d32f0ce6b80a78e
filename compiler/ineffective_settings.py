"""Settings that have no effect on a compiled job, although the job has their feature in general.

Settings without any counterpart are found by settings/settings_reader.py, before anything is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.settings.job_settings import JobSettings
from opchain.compiler.settings.settings_reader import key_of
from opchain.runtime.local.live_run import endless_sources, running_sources
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_BATCH = ("scheduler", "auto_parallelism", "batch_shuffle_mode")
_RECEIVERS = ("prometheus_textfile", "otlp_endpoint")
_OF_CODE = ("inline_functions", "rules_left_out")
_OF_CHECKPOINTS = ("checkpoint_retention", "retained_checkpoints", "allow_non_restored_state")


def ineffective_settings(plan: Plan) -> list[str]:
    """Each setting without effect on this job, with the reason in parentheses."""
    settings = plan.program.settings
    found = [
        f"{key_of(name)} = {getattr(settings, name)} ({why})"
        for name, why in _of_the_job(plan)
        if getattr(settings, name) != JobSettings.model_fields[name].default
    ]
    return [*found, *_of_operators(plan), *_of_slots(plan)]


def _of_the_job(plan: Plan) -> Iterator[tuple[str, str]]:
    settings, is_batch = plan.program.settings, required(plan.job_graph).is_batch
    is_unbounded = bool(endless_sources(required(plan.job_program)))
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
    is_live = plan.program.settings.target == "local" and bool(running_sources(job))
    return is_live or timeout_ms == 0


def _of_operators(plan: Plan) -> Iterator[str]:
    of_the_job = plan.program.settings.max_parallelism
    for vertex in required(plan.job_graph).vertices:
        for operator in vertex.operators:
            node = operator.node
            where = f"of '{node.name}' ({node.call_site})"
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
