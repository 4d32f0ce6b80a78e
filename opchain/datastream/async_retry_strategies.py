"""Strategies that decide when an async call is retried. PyFlink: pyflink.datastream.async_retry_strategies."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.functions.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    ExponentialBackoffDelayRetryStrategy,
    ExponentialBackoffDelayRetryStrategyBuilder,
    FixedDelayRetryStrategy,
    FixedDelayRetryStrategyBuilder,
    NoRetryStrategy,
    RetryPredicate,
)

__all__ = [
    "NO_RETRY_STRATEGY",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "ExponentialBackoffDelayRetryStrategy",
    "ExponentialBackoffDelayRetryStrategyBuilder",
    "FixedDelayRetryStrategy",
    "FixedDelayRetryStrategyBuilder",
    "NoRetryStrategy",
    "RetryPredicate",
]

__getattr__ = reexports(__name__)
