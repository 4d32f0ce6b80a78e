from __future__ import annotations

import pickle
from typing import Any

import pytest

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
    empty_result_predicate,
    has_exception_predicate,
)


def table(strategy: AsyncRetryStrategy[Any], attempts: int) -> list[tuple[bool, int]]:
    return [
        (strategy.can_retry(n), strategy.get_backoff_time_millis(n)) for n in range(1, attempts + 1)
    ]


def predicates(strategy: AsyncRetryStrategy[Any]) -> tuple[Any, Any]:
    predicate = strategy.get_retry_predicate()
    return predicate.result_predicate(), predicate.exception_predicate()


def test_no_retry_strategy_never_retries() -> None:
    assert table(AsyncRetryStrategy.no_restart(), 2) == [(False, -1), (False, -1)]
    assert predicates(NO_RETRY_STRATEGY) == (None, None)
    assert pickle.loads(pickle.dumps(NO_RETRY_STRATEGY)) == NO_RETRY_STRATEGY == NoRetryStrategy()
    assert hash(NoRetryStrategy()) == hash(NO_RETRY_STRATEGY)


@pytest.mark.parametrize("attempt", range(4))
def test_a_fixed_delay_is_the_same_for_each_attempt(attempt: int) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(2, 100, None, None)
    assert isinstance(strategy, FixedDelayRetryStrategy)
    assert strategy.can_retry(attempt) is (attempt <= 2)
    assert strategy.get_backoff_time_millis(attempt) == 100


# The delays of Flink 2.3 for the attempts 1, 2, 3, ... in turn.
def test_an_exponential_delay_is_that_of_flink() -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(5, 100, 1000, 2.0, None, None)
    assert table(strategy, 6) == [
        (True, 100),
        (True, 200),
        (True, 400),
        (True, 800),
        (True, 1000),
        (False, 1000),
    ]


def test_an_exponential_delay_is_rounded_down_before_it_is_multiplied_again() -> None:
    strategy = ExponentialBackoffDelayRetryStrategy[Any](9, 3, 1000, 1.5)
    assert [delay for _, delay in table(strategy, 5)] == [3, 4, 6, 9, 13]


def test_an_exponential_delay_depends_only_on_the_attempt_number() -> None:
    strategy = ExponentialBackoffDelayRetryStrategy[Any](9, 10, 1000, 2)
    assert [strategy.get_backoff_time_millis(n) for n in (3, 1, 3, 2, 0)] == [40, 10, 40, 20, 10]


@pytest.mark.parametrize(
    ("builder", "kind"),
    [
        (FixedDelayRetryStrategyBuilder(3, 10), FixedDelayRetryStrategy),
        (
            ExponentialBackoffDelayRetryStrategyBuilder(3, 10, 100, 2),
            ExponentialBackoffDelayRetryStrategy,
        ),
    ],
)
def test_builders_take_predicates(builder: Any, kind: Any) -> None:
    assert predicates(builder.build()) == (None, None)
    strategy = (
        builder.if_result(empty_result_predicate).if_exception(has_exception_predicate).build()
    )
    assert type(strategy) is kind
    assert predicates(strategy) == (empty_result_predicate, has_exception_predicate)
    assert predicates(pickle.loads(pickle.dumps(strategy))) == predicates(strategy)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: FixedDelayRetryStrategy(0, 1), "max_attempts is 0"),
        (lambda: FixedDelayRetryStrategy(1, 0), "backoff_time_millis is 0"),
        (lambda: FixedDelayRetryStrategyBuilder(-1, 5).build(), "max_attempts is -1"),
        (lambda: ExponentialBackoffDelayRetryStrategy(1, 0, 1, 1), "initial_delay is 0"),
        (lambda: ExponentialBackoffDelayRetryStrategy(1, 1, 0, 1), "max_retry_delay is 0"),
        (lambda: ExponentialBackoffDelayRetryStrategy(1, 1, 1, 0), "multiplier is 0"),
    ],
)
def test_numbers_must_be_positive(make: Any, what: str) -> None:
    with pytest.raises(ValueError, match=rf"{what}; it must be positive"):
        make()


def test_a_retry_predicate_has_a_result_and_an_exception_predicate() -> None:
    predicate = RetryPredicate[Any](empty_result_predicate, None)
    assert isinstance(predicate, AsyncRetryPredicate)
    assert (predicate.result_predicate(), predicate.exception_predicate()) == (
        empty_result_predicate,
        None,
    )
