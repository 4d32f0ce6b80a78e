"""Warnings about records: those dropped as late, and what operators warn of, such as text that is not UTF-8."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opchain.runtime.program.operator_specs import (
    IntervalJoinSpec,
    SourceSpec,
    TimestampsWatermarksSpec,
)

if TYPE_CHECKING:
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram

_LOG = logging.getLogger("opchain.job")


class RecordWarnings:
    """Warns of a job's late records, and of what operators found in their records.

    It warns of the first late record, and whenever their number has grown tenfold. What an operator found is warned of
    once.

    Args:
        job: The job.
    """

    def __init__(self, job: JobProgram) -> None:
        self._job = job
        self._operators = {operator.operator_id: operator for operator in job.operators}
        self._warned_from: dict[str, int] = {}
        self._noted: set[str] = set()

    def look_at(self, metrics: JobMetrics) -> None:
        """Logs warnings for the counts so far."""
        for operator in metrics.operators:
            self.note(operator.operator_id, operator.late_records_dropped, operator.records_in)
            self.note_warning(operator.operator_id, operator.warning)

    def note(self, operator_id: str, dropped: int, records_in: int) -> None:
        """Logs a warning for the late records of one operator, over all its subtasks."""
        if dropped >= self._warned_from.get(operator_id, 1):
            self._warned_from[operator_id] = 10 ** len(str(dropped))
            text = late_record_warning(self._job, self._operators[operator_id], dropped, records_in)
            _LOG.warning("%s", text)

    def note_warning(self, operator_id: str, warning: str | None) -> None:
        """Logs what an operator found in its records."""
        if warning is not None and operator_id not in self._noted:
            self._noted.add(operator_id)
            operator = self._operators[operator_id]
            _LOG.warning("'%s' (%s): %s", operator.name, operator.call_site, warning)


def late_record_warning(
    job: JobProgram, operator: OperatorProgram, dropped: int, records_in: int
) -> str:
    """The text of a warning about an operator's late records."""
    if isinstance(operator.spec, IntervalJoinSpec):
        why = "they were behind the watermark"
        keeping = "side_output_left_late_data() or side_output_right_late_data() on the join"
    else:
        why = "their windows had closed"
        keeping = "allowed_lateness() or side_output_late_data() on the windowed stream"
    records = "record" if records_in == 1 else "records"
    text = (
        f"{operator.label} dropped {dropped:,} of {records_in:,} {records} as late: "
        f"{why}. To keep late records, call {keeping}, or give the watermark strategy a longer bound"
    )
    hint = _assigned_behind_files(job)
    return text if hint is None else f"{text}. {hint}"


def _assigned_behind_files(job: JobProgram) -> str | None:
    """The advice for event time that is assigned downstream of a source of whole files."""
    for source in job.operators:
        spec = source.spec
        if isinstance(spec, SourceSpec) and getattr(spec.source, "deals_whole_files", False):
            for assigner in job.operators:
                if isinstance(assigner.spec, TimestampsWatermarksSpec):
                    return (
                        f"{assigner.label} assigns event time downstream of "
                        f"{source.label}. There a subtask reads its files one after the "
                        "other, so all of its second file can be late. Give the watermark strategy to "
                        "from_source() instead: each file then has a watermark of its own"
                    )
    return None
