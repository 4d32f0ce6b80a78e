"""What is left of a job when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.job_id import JobID


@dataclass(frozen=True)
class JobExecutionResult:
    """The id, the run time and the accumulators of a job that is over. Flink: JobExecutionResult.

    Attributes:
        net_runtime: Milliseconds from the start of the first task to the end of the last.
    """

    job_id: JobID
    net_runtime: int
    accumulator_results: Mapping[str, Any] = field(default_factory=dict)

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
        """The accumulator's value, or None if the job had none of that name."""
        return self.accumulator_results.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators by name."""
        return dict(self.accumulator_results)

    def __str__(self) -> str:
        lines = [f"Job {self.job_id} ran for {self.net_runtime} ms."]
        lines += [f"  {name}: {value}" for name, value in sorted(self.accumulator_results.items())]
        return "\n".join(lines)
