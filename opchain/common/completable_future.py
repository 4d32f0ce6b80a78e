"""CompletableFuture: the future result of an asynchronous call. PyFlink: pyflink.common.completable_future."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.job.client import CompletableFuture

__all__ = [
    "CompletableFuture",
]

__getattr__ = reexports(__name__)
