"""The states of a job. PyFlink: pyflink.common.job_status."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.job.client import JobStatus

__all__ = [
    "JobStatus",
]

__getattr__ = reexports(__name__)
