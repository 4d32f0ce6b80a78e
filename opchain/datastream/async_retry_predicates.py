"""Predicates for retries. PyFlink: pyflink.datastream.async_retry_predicates."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.functions.async_functions import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)

__all__ = [
    "empty_result_predicate",
    "exception_type_predicate",
    "has_exception_predicate",
]

__getattr__ = reexports(__name__)
