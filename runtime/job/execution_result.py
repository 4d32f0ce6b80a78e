"""What is left of a job when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.runtime.measurements.job_metrics import JobMetrics
from opchain.runtime.metrics.accumulators import AccumulatorError, FailedAccumulator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.job.status import JobID


@dataclass(frozen=True)
class JobExecutionResult:
    """The id, the run time and the accumulators of a job that is over. Flink: JobExecutionResult.

    Attributes:
        net_runtime: Milliseconds from the start of the first task to the end of the last.
        metrics: What the job counted, by vertex and operator; `print(result.metrics)` shows a table.
    """

    job_id: JobID
    net_runtime: int
    accumulator_results: Mapping[str, Any] = field(default_factory=dict)
    metrics: JobMetrics = field(default_factory=JobMetrics)

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self.job_id

    def is_job_execution_result(self) -> bool:
        """True: the job is over. Flink: isJobExecutionResult."""
        return True

    def get_net_runtime(self) -> int:
        """Milliseconds that the job ran, without compiling and submitting it."""
        return self.net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The accumulator's value, or None if the job had none of that name.

        Raises:
            AccumulatorError: What the subtasks sent could not be merged.
        """
        value = self.accumulator_results.get(accumulator_name)
        if isinstance(value, FailedAccumulator):
            raise AccumulatorError(
                f"the accumulator '{accumulator_name}' of job {self.job_id} has no value: {value.error}"
            )
        return value

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators by name.

        Raises:
            AccumulatorError: As `get_accumulator_result`, for any of them.
        """
        return {name: self.get_accumulator_result(name) for name in self.accumulator_results}

    def __str__(self) -> str:
        lines = [f"Job {self.job_id} ran for {self.net_runtime} ms."]
        lines += [f"  {name}: {value}" for name, value in sorted(self.accumulator_results.items())]
        return "\n".join(lines)
