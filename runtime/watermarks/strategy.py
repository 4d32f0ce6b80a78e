"""WatermarkStrategy: how timestamps are extracted and watermarks are generated."""

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
    """Extracts the event time of records. Flink: TimestampAssigner."""

    @abstractmethod
    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """Returns the event time of a record in milliseconds since the epoch.

        Args:
            value: The record.
            record_timestamp: The current timestamp of the record; -2**63 for none.
        """


@dataclass(frozen=True)
class RecordTimestampAssigner(TimestampAssigner[Any]):
    """Keeps the timestamps of the source."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:  # noqa: ARG002 - the contract
        """The current timestamp."""
        return record_timestamp


@dataclass(frozen=True)
class FunctionTimestampAssigner(TimestampAssigner[T_contra]):
    """A plain function as a TimestampAssigner."""

    function: Callable[[T_contra, int], int]

    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """The result of the function."""
        return self.function(value, record_timestamp)


class WatermarkGeneratorSupplier(Protocol[T]):
    """Creates the generator of a subtask, on the executor. It must be picklable."""

    def __call__(self, context: WatermarkGeneratorContext, /) -> WatermarkGenerator[T]:
        """Creates a new generator."""


@dataclass(frozen=True)
class NoWatermarks:
    """Creates generators that never emit a watermark."""

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Creates a new generator."""
        return NoWatermarksGenerator()


@dataclass(frozen=True)
class MonotonousTimestamps:
    """Creates generators for timestamps that never decrease."""

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Creates a new generator."""
        return AscendingTimestampsWatermarks()


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """Creates generators for timestamps that are behind the greatest timestamp by at most a bound."""

    max_out_of_orderness: Duration

    def __call__(self, _context: WatermarkGeneratorContext, /) -> WatermarkGenerator[Any]:
        """Creates a new generator."""
        return BoundedOutOfOrdernessWatermarks(self.max_out_of_orderness)


@dataclass(frozen=True)
class WatermarkAlignmentParams:
    """Sources of one group wait for the slowest source if they are ahead of it by more than the drift."""

    watermark_group: str
    max_allowed_watermark_drift: Duration
    update_interval: Duration


@dataclass(frozen=True)
class WatermarkStrategy(Generic[T]):
    """Timestamps and watermarks of a stream. The `with_...` methods return a new strategy, with one exception.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.with_idleness(Duration.of_minutes(1)).idle_timeout
    Duration(1 min)

    The exception: as in PyFlink, `with_timestamp_assigner` changes a strategy that has no assigner yet. PyFlink also
    replaces an existing assigner in place, and loses the assigner in a later `with_idleness`. Neither happens here.
    Flink: WatermarkStrategy.
    """

    generator_supplier: WatermarkGeneratorSupplier[T]
    timestamp_assigner: TimestampAssigner[T] | None = None
    idle_timeout: Duration | None = None
    alignment: WatermarkAlignmentParams | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy[Any]:
        """For timestamps that never decrease within a subtask."""
        return WatermarkStrategy(MonotonousTimestamps())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy[Any]:
        """For records whose timestamps are at most this much behind the greatest timestamp so far."""
        method = "for_bounded_out_of_orderness"
        _require_span(method, "max_out_of_orderness", max_out_of_orderness, Duration(0))
        return WatermarkStrategy(BoundedOutOfOrderness(max_out_of_orderness))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy[Any]:
        """For jobs in processing time. Only the end of a bounded input emits a watermark."""
        return WatermarkStrategy(NoWatermarks())

    @staticmethod
    def for_generator(
        generator_supplier: WatermarkGeneratorSupplier[T],
    ) -> WatermarkStrategy[T]:
        """For a custom generator: `for_generator(lambda context: MyGenerator())`.

        Flink: forGenerator, only in the Java API.
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
            timestamp_assigner: A TimestampAssigner, another object with a method `extract_timestamp`, or a function of
                a record and its current timestamp.
        """
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if isinstance(timestamp_assigner, type):
                name = timestamp_assigner.__name__
                raise TypeError(
                    f"with_timestamp_assigner got the class {name}; pass an object, such as {name}()"
                )
            # PyFlink calls this method of any object that has it
            function = getattr(timestamp_assigner, "extract_timestamp", timestamp_assigner)
            if not callable(function):
                raise TypeError(
                    "with_timestamp_assigner takes a TimestampAssigner or a function of a record "
                    f"and its timestamp, not {short_repr(timestamp_assigner)}"
                )
            timestamp_assigner = FunctionTimestampAssigner(function)
        if self.timestamp_assigner is not None:
            return replace(self, timestamp_assigner=timestamp_assigner)
        object.__setattr__(self, "timestamp_assigner", timestamp_assigner)
        return self

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy[T]:
        """Marks an input idle after this time without records. Downstream operators do not wait for an idle input.

        In a job that runs in epochs, they wait until the input's records of the epoch have been read. A second call replaces
        the timeout.
        """
        _require_span("with_idleness", "idle_timeout", idle_timeout, Duration(1))
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy[T]:
        """Makes the sources of a group wait for the slowest source.

        Reading pauses for a source, or one of its splits, that is too far ahead. In jobs with epochs, watermarks are
        compared at the end of each epoch: a source or a Kafka partition that is too far ahead gets no input in the next
        epoch. In bounded jobs it has no effect, because a task reads its inputs in the order of event time. Flink:
        FLIP-182 and FLIP-217.

        Args:
            watermark_group: The name of the group.
            max_allowed_watermark_drift: How far a source may be ahead of the slowest one.
            update_interval: Accepted as in PyFlink, but not used: sources compare after each batch or epoch.
        """
        method = "with_watermark_alignment"
        drift = max_allowed_watermark_drift
        interval = Duration.of_seconds(1) if update_interval is None else update_interval
        _require_span(method, "max_allowed_watermark_drift", drift, Duration(0))
        _require_span(method, "update_interval", interval, Duration(1))
        return replace(self, alignment=WatermarkAlignmentParams(watermark_group, drift, interval))

    @property
    def makes_watermarks(self) -> bool:
        """Whether generators emit watermarks. False for `no_watermarks`."""
        return not isinstance(self.generator_supplier, NoWatermarks)

    def create_timestamp_assigner(self) -> TimestampAssigner[T]:
        """The assigner. The default keeps the timestamps of the source."""
        return self.timestamp_assigner or RecordTimestampAssigner()

    def create_watermark_generator(
        self, context: WatermarkGeneratorContext
    ) -> WatermarkGenerator[T]:
        """Creates the generator of a subtask, with idleness if a timeout is set.

        Raises:
            TypeError: The function of `for_generator` did not return a generator.
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
    """PyFlink's wrapper of a Java assigner; not supported. Write a WatermarkGenerator instead.

    Raises:
        UnsupportedFeatureError: Always, in the constructor.
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
