"""Watermark alignment between epochs: a source that is ahead of its group gets no input in the next epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.constants import MAX_LONG_VALUE
from opchain.runtime.program.operator_specs import SourceSpec
from opchain.runtime.watermarks.alignment import limit_of

if TYPE_CHECKING:
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.operator_metrics import OperatorMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.watermarks.strategy import WatermarkAlignmentParams


def sources_ahead(job: JobProgram, metrics: JobMetrics) -> frozenset[str]:
    """The operator ids of the sources that have to wait.

    Args:
        job: The job.
        metrics: Those of the last epoch.
    """
    found: dict[str, tuple[WatermarkAlignmentParams, int]] = {}
    for vertex, counted in zip(job.vertices, metrics.vertices, strict=True):
        for program, operator in zip(vertex.all_operators, counted.operators, strict=True):
            spec = program.spec
            strategy = spec.watermark_strategy if isinstance(spec, SourceSpec) else None
            if (
                strategy is not None
                and strategy.alignment is not None
                and strategy.makes_watermarks
            ):
                found[program.operator_id] = strategy.alignment, _watermark(operator)
    least: dict[str, int] = {}
    for alignment, watermark in found.values():
        group = alignment.watermark_group
        least[group] = min(watermark, least.get(group, MAX_LONG_VALUE))
    return frozenset(
        operator_id
        for operator_id, (alignment, watermark) in found.items()
        if watermark < MAX_LONG_VALUE
        and watermark
        > limit_of(
            least[alignment.watermark_group], alignment.max_allowed_watermark_drift.to_millis()
        )
    )


def _watermark(operator: OperatorMetrics) -> int:
    """The least watermark of the subtasks that are not idle; 2**63 - 1 if all are."""
    marks = [item.output_watermark for item in operator.subtasks if not item.output_is_idle]
    return min(marks, default=MAX_LONG_VALUE)
