from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from opchain.compiler.settings.restart_strategy import (
    RestartStrategies,
    RestartStrategyConfiguration,
)
from opchain.datastream import StreamExecutionEnvironment

TEN_SECONDS = timedelta(seconds=10)

STRATEGIES: dict[str, tuple[Any, str, dict[str, str]]] = {
    "none": (RestartStrategies.no_restart, "no restart", {"restart-strategy.type": "none"}),
    "fallback": (RestartStrategies.fall_back_restart, "as the cluster is configured", {}),
    "fixed delay": (
        lambda: RestartStrategies.fixed_delay_restart(3, 10_000),
        "up to 3 restarts, 10 s apart",
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "10 s",
        },
    ),
    "failure rate": (
        lambda: RestartStrategies.failure_rate_restart(2, timedelta(minutes=5), 500),
        "restarts while there are at most 2 failures in 5 min, 500 ms apart",
        {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": "2",
            "restart-strategy.failure-rate.failure-rate-interval": "5 min",
            "restart-strategy.failure-rate.delay": "500 ms",
        },
    ),
}


@pytest.mark.parametrize(("make", "description", "keys"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_restart_strategy_sets_flinks_keys_and_compares_by_value(
    make: Any, description: str, keys: dict[str, str]
) -> None:
    strategy: RestartStrategyConfiguration = make()
    assert strategy.get_description() == description
    assert strategy.to_configuration().to_dict() == keys
    assert strategy == make()
    assert hash(strategy) == hash(make())
    assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_different_restart_strategies_are_not_equal() -> None:
    made = [make() for make, _, _ in STRATEGIES.values()]
    assert len(set(made)) == len(made)


def test_restart_strategies_take_milliseconds_or_timedeltas() -> None:
    assert RestartStrategies.fixed_delay_restart(
        3, 10_000
    ) == RestartStrategies.fixed_delay_restart(3, TEN_SECONDS)


def test_attributes_of_a_restart_strategy_can_be_read() -> None:
    fixed = RestartStrategies.fixed_delay_restart(3, 10_000)
    assert fixed.get_restart_attempts() == 3
    assert fixed.get_delay_between_attempts_interval() == TEN_SECONDS
    rate = RestartStrategies.failure_rate_restart(2, 10_000, 500)
    assert rate.get_max_failure_rate() == 2
    assert rate.get_failure_interval() == TEN_SECONDS
    assert rate.get_delay_between_attempts_interval() == timedelta(milliseconds=500)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda s: s.fixed_delay_restart(3, "10 s"), TypeError, "delay_between_attempts_interval"),
        (lambda s: s.fixed_delay_restart(3, -1), ValueError, "delay_between_attempts_interval"),
        (lambda s: s.fixed_delay_restart(None, 1), TypeError, "restart_attempts is None"),
        (lambda s: s.fixed_delay_restart(-1, 1), ValueError, "restart_attempts is -1"),
        (lambda s: s.failure_rate_restart(1, 1.5, 1), TypeError, "failure_interval is 1.5"),
        (lambda s: s.failure_rate_restart(True, 1, 1), TypeError, "max_failure_rate is True"),
    ],
)
def test_restart_strategies_refuse_invalid_numbers(
    make: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(RestartStrategies)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_set_restart_strategy_refuses_other_objects() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    for of in (env, env.get_config()):
        with pytest.raises(TypeError, match="takes a strategy of RestartStrategies, not 3"):
            of.set_restart_strategy(3)  # type: ignore[arg-type]
