"""The id of one run of a job. PyFlink: pyflink.common.job_id."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.job.client import JobID

__all__ = [
    "JobID",
]

__getattr__ = reexports(__name__)
