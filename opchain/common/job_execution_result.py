"""The result of a job. PyFlink: pyflink.common.job_execution_result."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.job.client import JobExecutionResult

__all__ = [
    "JobExecutionResult",
]

__getattr__ = reexports(__name__)
