"""Harnesses for operators of one and of two inputs, with and without keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.testing.operator_harness import OperatorHarness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class OneInputOperatorHarness(OperatorHarness):
    """An operator of one input without key; further arguments as OperatorHarness has them.

    Flink: `OneInputStreamOperatorTestHarness`.
    """

    def __init__(self, function: Any, **settings: Any) -> None:
        super().__init__(function, (None,), **settings)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Takes a record; `timestamp` is its event time in milliseconds."""
        self._take_element(0, value, timestamp)

    def process_elements(self, records: Iterable[tuple[Any, int | None]]) -> None:
        """Takes records as (value, timestamp)."""
        for value, timestamp in records:
            self._take_element(0, value, timestamp)

    def process_watermark(self, watermark: int) -> None:
        """Takes a watermark: fires timers, and passes it on."""
        self._take_watermark(0, watermark)

    def process_status(self, *, is_idle: bool) -> None:
        """Takes the idleness of the input."""
        self.operator.process_status(is_idle)


class KeyedOneInputOperatorHarness(OneInputOperatorHarness):
    """An operator on a keyed stream. Flink: `KeyedOneInputStreamOperatorTestHarness`.

    Args:
        function: See OperatorHarness.
        key_selector: What gives a record's key.
        settings: See OperatorHarness.
    """

    def __init__(self, function: Any, key_selector: Callable[[Any], Any], **settings: Any) -> None:
        OperatorHarness.__init__(self, function, (key_selector,), **settings)


class TwoInputOperatorHarness(OperatorHarness):
    """An operator of two inputs without keys. Flink: `TwoInputStreamOperatorTestHarness`."""

    def __init__(self, function: Any, **settings: Any) -> None:
        super().__init__(function, (None, None), **settings)

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Takes a record of the first input."""
        self._take_element(0, value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Takes a record of the second input, the broadcast one where there is one."""
        self._take_element(1, value, timestamp)

    def process_watermark1(self, watermark: int) -> None:
        """Takes a watermark of the first input; the smaller of both counts."""
        self._take_watermark(0, watermark)

    def process_watermark2(self, watermark: int) -> None:
        """Takes a watermark of the second input; the smaller of both counts."""
        self._take_watermark(1, watermark)

    def process_both_watermarks(self, watermark: int) -> None:
        """Takes the same watermark on both inputs."""
        self._take_watermark(0, watermark)
        self._take_watermark(1, watermark)

    def process_status1(self, *, is_idle: bool) -> None:
        """Takes the idleness of the first input."""
        self.operator.process_status_of(0, is_idle=is_idle)

    def process_status2(self, *, is_idle: bool) -> None:
        """Takes the idleness of the second input."""
        self.operator.process_status_of(1, is_idle=is_idle)


class KeyedTwoInputOperatorHarness(TwoInputOperatorHarness):
    """An operator on connected keyed streams. Flink: `KeyedTwoInputStreamOperatorTestHarness`.

    Args:
        function: See OperatorHarness.
        key_selector1: What gives the key of a record of the first input.
        key_selector2: The same for the second input; None for a broadcast one.
        settings: See OperatorHarness.
    """

    def __init__(
        self,
        function: Any,
        key_selector1: Callable[[Any], Any],
        key_selector2: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        OperatorHarness.__init__(self, function, (key_selector1, key_selector2), **settings)
