"""Watermark generators: called with every record, and periodically to emit watermarks.

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
    """Receives the watermarks of a generator. Flink: WatermarkOutput."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """Emits a watermark: no record with this timestamp (milliseconds) or an earlier one will follow.

        A watermark that is not greater than the last one is ignored. Otherwise the output also becomes active again.
        """

    @abstractmethod
    def mark_idle(self) -> None:
        """Marks this input idle: downstream operators do not wait for its watermark."""

    @abstractmethod
    def mark_active(self) -> None:
        """Marks this input active again."""


class WatermarkGenerator(ABC, Generic[T]):
    """Generates the watermarks of one source, split or subtask. Flink: WatermarkGenerator."""

    @abstractmethod
    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record. It may store the timestamp, or emit a watermark."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called once per auto-watermark interval. It may emit a watermark."""


@dataclass(frozen=True)
class WatermarkGeneratorContext:
    """The services of the task for a generator. Flink: WatermarkGeneratorSupplier.Context.

    Attributes:
        clock_ns: A clock in nanoseconds with any origin. It stops while the input is blocked, so back-pressure does not
            make an input idle (Flink: getInputActivityClock).
        metric_group: The metric group for the generator's own metrics.
    """

    clock_ns: Callable[[], int]
    metric_group: Any = None


class NoWatermarksGenerator(WatermarkGenerator[T]):
    """Never emits a watermark."""

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Does nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Does nothing."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator[T]):
    """Emits the greatest timestamp so far, minus the bound, minus one millisecond.

    Before the first record it emits -2**63, which has no effect.
    """

    def __init__(self, max_out_of_orderness: Duration) -> None:
        self._out_of_orderness_ms = max_out_of_orderness.to_millis()
        self._max_timestamp = MIN_LONG_VALUE + self._out_of_orderness_ms + 1

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:  # noqa: ARG002 - the contract
        """Updates the greatest timestamp."""
        if event_timestamp > self._max_timestamp:  # noqa: PLR1730 - half the cost of max()
            self._max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits the greatest timestamp, minus the bound, minus one: records with equal timestamps may still follow."""
        output.emit_watermark(self._max_timestamp - self._out_of_orderness_ms - 1)


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks[T]):
    """For timestamps that never decrease: a bound of zero."""

    def __init__(self) -> None:
        super().__init__(Duration(0))


class IdlenessTimer:
    """Detects that there was no activity for longer than a timeout.

    The time is measured from the first check without activity, not from the last activity. Flink:
    WatermarksWithIdleness.IdlenessTimer.
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
        """Sets the clock, after creation or a restore: checkpoints do not contain the clock."""
        self._clock_ns = clock_ns

    def activity(self) -> None:
        """Records activity."""
        self._was_active = True

    def due_ns(self) -> int:
        """The time at which the timeout passes if there is no activity before."""
        since = self._clock_ns() if self._idle_since_ns is None else self._idle_since_ns
        return since + self._timeout_ns

    def check_if_idle(self) -> bool:
        """Whether the timeout has passed. Call it repeatedly."""
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
    """Wraps a generator, and marks the output idle if no records arrive for a timeout.

    While the output is idle, the wrapped generator is not called periodically. The output becomes active with the next
    greater watermark. Flink: WatermarksWithIdleness.
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
        """Sets the clock."""
        self._timer.use_clock(clock_ns)

    def idle_at_ns(self) -> int | None:
        """The time at which the output becomes idle if no record arrives. None if it is idle."""
        return None if self._is_idle else self._timer.due_ns()

    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Calls the wrapped generator, and restarts the timeout."""
        self._watermarks.on_event(event, event_timestamp, output)
        self._timer.activity()
        self._is_idle = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Marks the output idle, once, when the timeout has passed. Before that, calls the wrapped generator."""
        if not self._timer.check_if_idle():
            self._watermarks.on_periodic_emit(output)
        elif not self._is_idle:
            output.mark_idle()
            self._is_idle = True
