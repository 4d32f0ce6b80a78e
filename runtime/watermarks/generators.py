"""Watermark generators: they see every record, and are asked for watermarks periodically.

The arithmetic is that of Flink's package org.apache.flink.api.common.eventtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.time import MIN_LONG_VALUE, Duration
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable


class WatermarkOutput(ABC):
    """Takes the watermarks of a generator. Flink: WatermarkOutput."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """States that no record with this timestamp, in milliseconds, or an earlier one will follow.

        Does nothing where it is not ahead of the last one. Else the output is active again.
        """

    @abstractmethod
    def mark_idle(self) -> None:
        """States that nothing may come for a while, so that others need not wait for this input."""

    @abstractmethod
    def mark_active(self) -> None:
        """Takes back `mark_idle`."""


class WatermarkGenerator(ABC, Generic[T]):
    """Makes the watermarks of one source, split or subtask. Flink: WatermarkGenerator."""

    @abstractmethod
    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record, to remember its timestamp, or to emit a watermark at once."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called once in an auto watermark interval, to emit a watermark or not."""


@dataclass(frozen=True)
class WatermarkGeneratorContext:
    """The services of the task for a generator. Flink: WatermarkGeneratorSupplier.Context.

    Attributes:
        clock_ns: Nanoseconds from any origin. It stands still while the input is kept waiting, so
            that back-pressure is not taken for an idle input (Flink: getInputActivityClock).
        metric_group: Where the generator may register metrics of its own.
    """

    clock_ns: Callable[[], int]
    metric_group: Any = None


class NoWatermarksGenerator(WatermarkGenerator[T]):
    """Emits nothing."""

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator[T]):
    """Trails the greatest timestamp so far by the bound and one millisecond.

    Emits -2**63 while there was no record: one that says nothing.
    """

    def __init__(self, max_out_of_orderness: Duration) -> None:
        self._out_of_orderness_ms = max_out_of_orderness.to_millis()
        self._max_timestamp = MIN_LONG_VALUE + self._out_of_orderness_ms + 1

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:  # noqa: ARG002 - the contract
        """Remembers the timestamp if it is the greatest."""
        if event_timestamp > self._max_timestamp:  # noqa: PLR1730 - half the cost of max()
            self._max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits the greatest timestamp, less the bound, less one: equal timestamps may still come."""
        output.emit_watermark(self._max_timestamp - self._out_of_orderness_ms - 1)


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks[T]):
    """For timestamps that never fall: a bound of zero."""

    def __init__(self) -> None:
        super().__init__(Duration(0))


class IdlenessTimer:
    """Tells when nothing has happened for longer than a timeout.

    The time is measured from the first check that saw no activity, not from the last activity.
    Flink: WatermarksWithIdleness.IdlenessTimer.
    """

    def __init__(self, clock_ns: Callable[[], int], idle_timeout: Duration) -> None:
        self._clock_ns = clock_ns
        self._timeout_ns = idle_timeout.to_nanos()
        self._was_active = False
        self._idle_since_ns: int | None = None

    def __getstate__(self) -> tuple[int, bool, int | None]:
        return self._timeout_ns, self._was_active, self._idle_since_ns

    def __setstate__(self, state: tuple[int, bool, int | None]) -> None:
        self._timeout_ns, self._was_active, self._idle_since_ns = state

    def use_clock(self, clock_ns: Callable[[], int]) -> None:
        """Goes by this clock from now on; a checkpoint keeps no clock."""
        self._clock_ns = clock_ns

    def activity(self) -> None:
        """Notes that something happened."""
        self._was_active = True

    def due_ns(self) -> int:
        """When the timeout passes if nothing happens until then."""
        since = self._clock_ns() if self._idle_since_ns is None else self._idle_since_ns
        return since + self._timeout_ns

    def check_if_idle(self) -> bool:
        """Whether the timeout has passed; to be called again and again."""
        if self._was_active:
            self._was_active = False
            self._idle_since_ns = None
            return False
        now = self._clock_ns()
        if self._idle_since_ns is None:
            self._idle_since_ns = now
            return False
        return now - self._idle_since_ns > self._timeout_ns


class WatermarksWithIdleness(WatermarkGenerator[T]):
    """Adds idleness to another generator: marks the output idle when records stay away.

    While idle, the other generator is not asked for watermarks. The output becomes active again with
    the next watermark that moves ahead. Flink: WatermarksWithIdleness.
    """

    def __init__(
        self,
        watermarks: WatermarkGenerator[T],
        idle_timeout: Duration,
        clock_ns: Callable[[], int],
    ) -> None:
        self._watermarks = watermarks
        self._timer = IdlenessTimer(clock_ns, idle_timeout)
        self._is_idle = False

    def use_clock(self, clock_ns: Callable[[], int]) -> None:
        """Goes by this clock from now on."""
        self._timer.use_clock(clock_ns)

    def idle_at_ns(self) -> int | None:
        """When the output becomes idle if no record comes; None if it is idle."""
        return None if self._is_idle else self._timer.due_ns()

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Passes the record on, and starts the timeout again."""
        self._watermarks.on_event(event, event_timestamp, output)
        self._timer.activity()
        self._is_idle = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Marks the output idle, once, after the timeout; asks for a watermark before it."""
        if not self._timer.check_if_idle():
            self._watermarks.on_periodic_emit(output)
        elif not self._is_idle:
            output.mark_idle()
            self._is_idle = True
