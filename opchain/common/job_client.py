"""The handle of one job. PyFlink: pyflink.common.job_client."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.job.client import JobClient

__all__ = [
    "JobClient",
]

__getattr__ = reexports(__name__)
