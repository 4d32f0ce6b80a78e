"""The states of a job. PyFlink: pyflink.common.job_status."""

from __future__ import annotations

from opchain.runtime.job.status import JobStatus

__all__ = [
    "JobStatus",
]
