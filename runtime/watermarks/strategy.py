"""Event time as the user describes it: where timestamps come from, and how watermarks follow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol

from opchain.runtime.errors import short_repr
from opchain.runtime.java_objects import no_java
from opchain.runtime.time import Duration
from opchain.runtime.types.type_variables import T, T_contra
from opchain.runtime.watermarks.generators import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarksWithIdleness,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class TimestampAssigner(ABC, Generic[T_contra]):
    """Gives records their event time. Flink: TimestampAssigner."""

    @abstractmethod
    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """The record's time in milliseconds since the epoch.

        Args:
            value: The record.
            record_timestamp: The time that it has so far; -2**63 for none.
        """


@dataclass(frozen=True)
class RecordTimestampAssigner(TimestampAssigner[Any]):
    """Leaves the timestamps that the source gave."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:  # noqa: ARG002 - the contract
        """The time that the record has."""
        return record_timestamp


@dataclass(frozen=True)
class FunctionTimestampAssigner(TimestampAssigner[T_contra]):
    """A plain function as a TimestampAssigner."""

    function: Callable[[T_contra, int], int]

    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """The result of the function."""
        return self.function(value, record_timestamp)


class WatermarkGeneratorSupplier(Protocol[T]):
    """Makes the generator of one subtask, on the executor; picklable."""

    def __call__(self, context: WatermarkGeneratorContext, /) -> WatermarkGenerator[T]:
        """A generator that no other subtask shares."""


@dataclass(frozen=True)
class NoWatermarks:
    """Supplies generators that emit nothing."""

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Such a generator."""
        return NoWatermarksGenerator()


@dataclass(frozen=True)
class MonotonousTimestamps:
    """Supplies generators for timestamps that never fall."""

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Such a generator."""
        return AscendingTimestampsWatermarks()


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """Supplies generators for timestamps that fall behind the greatest by at most a bound."""

    max_out_of_orderness: Duration

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Such a generator."""
        return BoundedOutOfOrdernessWatermarks(self.max_out_of_orderness)


@dataclass(frozen=True)
class WatermarkAlignmentParams:
    """Sources of one group wait for the slowest when they are further ahead than the drift allows."""

    watermark_group: str
    max_allowed_watermark_drift: Duration
    update_interval: Duration


@dataclass(frozen=True)
class WatermarkStrategy(Generic[T]):
    """Timestamps and watermarks of a stream. A `with_...` method returns a new strategy, except for the first assigner.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.with_idleness(Duration.of_minutes(1)).idle_timeout
    Duration(1 min)

    Flink: WatermarkStrategy. As in PyFlink, `with_timestamp_assigner` changes a strategy that has no assigner yet. PyFlink
    also replaces an assigner in place, and loses the assigner in a later `with_idleness`; here neither happens.
    """

    generator_supplier: WatermarkGeneratorSupplier[T]
    timestamp_assigner: TimestampAssigner[T] | None = None
    idle_timeout: Duration | None = None
    alignment: WatermarkAlignmentParams | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy[Any]:
        """For timestamps that never fall within a subtask."""
        return WatermarkStrategy(MonotonousTimestamps())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy[Any]:
        """For records that come at most this much later than one with a greater timestamp."""
        method = "for_bounded_out_of_orderness"
        _require_span(method, "max_out_of_orderness", max_out_of_orderness, Duration(0))
        return WatermarkStrategy(BoundedOutOfOrderness(max_out_of_orderness))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy[Any]:
        """For processing time alone: only the end of a bounded input gives a watermark."""
        return WatermarkStrategy(NoWatermarks())

    @staticmethod
    def for_generator(
        generator_supplier: WatermarkGeneratorSupplier[T],
    ) -> WatermarkStrategy[T]:
        """For a generator of one's own: `for_generator(lambda context: MyGenerator())`.

        Flink: forGenerator, in Java only.
        """
        if not callable(generator_supplier):
            raise TypeError(
                "for_generator takes a function that returns a WatermarkGenerator, such as "
                f"lambda context: MyGenerator(), not {short_repr(generator_supplier)}"
            )
        return WatermarkStrategy(generator_supplier)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner[T] | Callable[[T, int], int]
    ) -> WatermarkStrategy[T]:
        """Takes timestamps from the assigner instead of from the source.

        A strategy without an assigner is changed and returned, because PyFlink programs may ignore the result.

        Args:
            timestamp_assigner: A TimestampAssigner, or a function of a record and the timestamp it
                has so far.
        """
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if not callable(timestamp_assigner):
                raise TypeError(
                    "with_timestamp_assigner takes a TimestampAssigner or a function of a record "
                    f"and its timestamp, not {short_repr(timestamp_assigner)}"
                )
            timestamp_assigner = FunctionTimestampAssigner(timestamp_assigner)
        if self.timestamp_assigner is not None:
            return replace(self, timestamp_assigner=timestamp_assigner)
        object.__setattr__(self, "timestamp_assigner", timestamp_assigner)
        return self

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy[T]:
        """Lets others continue without this input after it gave no record for this long.

        A second call replaces the timeout.
        """
        _require_span("with_idleness", "idle_timeout", idle_timeout, Duration(1))
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy[T]:
        """Makes sources of a group wait for the slowest of it.

        In unbounded jobs a source, or one of its splits, that is ahead is not read. In jobs with epochs the
        watermarks are compared when an epoch has ended: a source or a partition of Kafka that is ahead gets
        no input in the next epoch. In bounded jobs nothing has to wait: a task reads its inputs in the
        order of event time. Flink: FLIP-182 and FLIP-217.

        Args:
            watermark_group: The group's name.
            max_allowed_watermark_drift: How far ahead of the slowest a source may read.
            update_interval: Taken as in PyFlink. Here sources compare after each batch or epoch.
        """
        method = "with_watermark_alignment"
        drift = max_allowed_watermark_drift
        interval = Duration.of_seconds(1) if update_interval is None else update_interval
        _require_span(method, "max_allowed_watermark_drift", drift, Duration(0))
        _require_span(method, "update_interval", interval, Duration(1))
        return replace(self, alignment=WatermarkAlignmentParams(watermark_group, drift, interval))

    @property
    def makes_watermarks(self) -> bool:
        """Whether generators emit watermarks; not with `no_watermarks`."""
        return not isinstance(self.generator_supplier, NoWatermarks)

    def create_timestamp_assigner(self) -> TimestampAssigner[T]:
        """The assigner; without one, the one that leaves timestamps as they are."""
        return self.timestamp_assigner or RecordTimestampAssigner()

    def create_watermark_generator(
        self, context: WatermarkGeneratorContext
    ) -> WatermarkGenerator[T]:
        """A new generator for one subtask, with idleness if there is a timeout.

        Raises:
            TypeError: The function of `for_generator` gave something else.
        """
        generator = self.generator_supplier(context)
        if not isinstance(generator, WatermarkGenerator):
            raise TypeError(
                f"the function given to for_generator returned {short_repr(generator)}; it must "
                "return a WatermarkGenerator"
            )
        if self.idle_timeout is None:
            return generator
        return WatermarksWithIdleness(generator, self.idle_timeout, context.clock_ns)


class AssignerWithPeriodicWatermarksWrapper:
    """Holds a Java assigner in PyFlink; not available. Write a WatermarkGenerator instead.

    Raises:
        UnsupportedFeatureError: When it is made.
    """

    def __init__(self, j_assigner_with_periodic_watermarks: Any) -> None:  # noqa: ARG002 - PyFlink's signature
        raise no_java(
            "AssignerWithPeriodicWatermarksWrapper",
            "pass WatermarkStrategy.for_generator a function that returns a WatermarkGenerator",
        )


def _require_span(method: str, parameter: str, span: Any, shortest: Duration) -> None:
    if not isinstance(span, Duration):
        raise TypeError(
            f"{method}: {parameter} is {short_repr(span)}; it must be a Duration, such as "
            "Duration.of_seconds(5)"
        )
    if span < shortest:
        least = "negative" if shortest == Duration(0) else "zero or negative"
        raise ValueError(f"{method}: {parameter} is {span}; it must not be {least}")
