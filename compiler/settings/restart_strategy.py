"""Restart strategies: whether, how often and when a failed job is restarted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.time import Duration

_PREFIX = "restart-strategy"


class RestartStrategyConfiguration(ABC):
    """The base class of restart strategies. Flink: RestartStrategyConfiguration."""

    @abstractmethod
    def get_description(self) -> str:
        """A description in one line, for people."""

    @abstractmethod
    def to_configuration(self) -> Configuration:
        """The equivalent configuration keys. They are empty for the fallback."""


class RestartStrategies:
    """Creates restart strategies.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'up to 3 restarts, 10 s apart'

    PyFlink 1 has this class. Flink 2 only has the equivalent configuration keys. A time span is a timedelta, or an int
    of milliseconds.
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure ends the job."""

        def get_description(self) -> str:
            """A description in one line, for people."""
            return "no restart"

        def to_configuration(self) -> Configuration:
            """The equivalent configuration keys."""
            return _configuration("none")

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A maximum number of restarts, with a fixed delay before each."""

        restart_attempts: int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
            _require_count("restart_attempts", self.restart_attempts)
            _keep_timedelta(self, "delay_between_attempts_interval")

        def get_restart_attempts(self) -> int:
            """The maximum number of restarts."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before each restart."""
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            """A description in one line, for people."""
            delay = Duration.of_timedelta(self.get_delay_between_attempts_interval())
            return f"up to {self.restart_attempts} restarts, {delay} apart"

        def to_configuration(self) -> Configuration:
            """The equivalent configuration keys."""
            return _configuration(
                "fixed-delay",
                attempts=self.restart_attempts,
                delay=self.get_delay_between_attempts_interval(),
            )

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts until too many failures happen within an interval."""

        max_failure_rate: int
        failure_interval: timedelta | int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
            _require_count("max_failure_rate", self.max_failure_rate)
            _keep_timedelta(self, "failure_interval")
            _keep_timedelta(self, "delay_between_attempts_interval")

        def get_max_failure_rate(self) -> int:
            """The maximum number of failures in an interval. One more failure ends the job."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """The interval in which failures are counted."""
            return _timedelta(self.failure_interval)

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before each restart."""
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            """A description in one line, for people."""
            interval = Duration.of_timedelta(self.get_failure_interval())
            delay = Duration.of_timedelta(self.get_delay_between_attempts_interval())
            return (
                f"restarts while there are at most {self.max_failure_rate} failures in {interval}, "
                f"{delay} apart"
            )

        def to_configuration(self) -> Configuration:
            """The equivalent configuration keys."""
            return _configuration(
                "failure-rate",
                max_failures_per_interval=self.max_failure_rate,
                failure_rate_interval=self.get_failure_interval(),
                delay=self.get_delay_between_attempts_interval(),
            )

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Uses the restart strategy of the cluster's configuration."""

        def get_description(self) -> str:
            """A description in one line, for people."""
            return "as the cluster is configured"

        def to_configuration(self) -> Configuration:
            """An empty configuration."""
            return Configuration()

    @staticmethod
    def no_restart() -> RestartStrategies.NoRestartStrategyConfiguration:
        """The first failure ends the job."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategies.FallbackRestartStrategyConfiguration:
        """Uses the restart strategy of the cluster's configuration."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: timedelta | int
    ) -> RestartStrategies.FixedDelayRestartStrategyConfiguration:
        """A maximum number of restarts, with a fixed delay before each."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, delay_between_attempts
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: timedelta | int, delay_interval: timedelta | int
    ) -> RestartStrategies.FailureRateRestartStrategyConfiguration:
        """Restarts until more than `failure_rate` failures happen within one interval."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, failure_interval, delay_interval
        )


def _configuration(kind: str, **values: int | timedelta) -> Configuration:
    configuration = Configuration().set_string(f"{_PREFIX}.type", kind)
    for name, value in values.items():
        key = f"{_PREFIX}.{kind}.{name.replace('_', '-')}"
        if isinstance(value, timedelta):
            configuration.set_string(key, str(Duration.of_timedelta(value)))
        else:
            configuration.set_integer(key, value)
    return configuration


def _timedelta(span: timedelta | int) -> timedelta:
    return span if isinstance(span, timedelta) else timedelta(milliseconds=span)


def _keep_timedelta(of: Any, name: str) -> None:
    span = getattr(of, name)
    if isinstance(span, bool) or not isinstance(span, (timedelta, int)):
        raise TypeError(f"{name} is {span!r}; it must be a timedelta, or an int of milliseconds")
    if _timedelta(span) < timedelta():
        raise ValueError(f"{name} is {span!r}; it must not be negative")
    object.__setattr__(of, name, _timedelta(span))


def _require_count(name: str, count: Any) -> None:
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"{name} is {count!r}; it must be an int")
    if count < 0:
        raise ValueError(f"{name} is {count}; it must not be negative")
