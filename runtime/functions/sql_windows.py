"""Aggregates of SQL over windows: the functions of a window operator, made from the texts of Python expressions.

compiler/table/aggregates.py creates the texts. As in sql.py, a text can only use the functions of that module, and those
of `_FUNCTIONS` here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.record_functions import AggregateFunction, FlatMapFunction
from opchain.runtime.functions.sql import FUNCTIONS, epoch_ms, from_epoch_ms
from opchain.runtime.functions.window import AllWindowFunction, TimeWindow, WindowFunction
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Moments:
    """The count, the mean and the sum of squared differences from the mean, for STDDEV and VAR. Flink: Welford's method."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def added(self, value: Any) -> Moments:
        """The moments with one more number."""
        count, number = self.count + 1, float(value)
        mean = self.mean + (number - self.mean) / count
        return Moments(count, mean, self.squares + (number - self.mean) * (number - mean))

    def merged(self, other: Moments) -> Moments:
        """The moments of all numbers of both."""
        count = self.count + other.count
        if not count:
            return self
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * other.count / count,
            self.squares + other.squares + apart * apart * self.count * other.count / count,
        )

    def variance(self, ddof: int) -> float | None:
        """The variance, divided by the count minus `ddof`; None if that is not positive."""
        divisor = self.count - ddof
        return self.squares / divisor if divisor > 0 else None


def _noted(values: dict[Any, None], value: Any) -> dict[Any, None]:
    """Different values, in the order in which they came."""
    values[value] = None
    return values


def _counted(counts: dict[Any, int], value: Any) -> dict[Any, int]:
    counts[value] = counts.get(value, 0) + 1
    return counts


def _of_both(counts: dict[Any, int], others: dict[Any, int]) -> dict[Any, int]:
    return {key: counts.get(key, 0) + others.get(key, 0) for key in {**counts, **others}}


def _appended(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _fitting(value: Any, bits: int, shown: str) -> Any:
    """The value itself.

    Raises:
        OverflowError: It has more bits.
    """
    half = 1 << (bits - 1)
    if value is not None and not -half <= value < half:
        raise OverflowError(
            f"{shown} is {value}, which does not fit into {bits} bits; CAST the argument to BIGINT or DECIMAL"
        )
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "moments": Moments,
    "noted": _noted,
    "counted": _counted,
    "of_both": _of_both,
    "appended": _appended,
    "fitting": _fitting,
    "folded": reduce,
    "root": lambda value: None if value is None else math.sqrt(value),
    "listed": lambda values, separator: separator.join(values) if values else None,
}


class RowAggregate(AggregateFunction[Any, Any, Any]):
    """The aggregates of a query, over rows that have their arguments. The accumulator is a tuple.

    >>> count = RowAggregate("(0,)", "(acc[0] + 1,)", "(acc[0] + other[0],)", "acc", "COUNT(*)")
    >>> count.get_result(count.add(Row("x"), count.create_accumulator()))
    (1,)

    Args:
        created: The first accumulator.
        added: The accumulator `acc` with `row` added.
        merged: The accumulator of `acc` and `other`.
        result: The results as a tuple.
        shown: The SQL text, for plans and errors.
    """

    def __init__(self, created: str, added: str, merged: str, result: str, shown: str) -> None:
        self._texts = created, added, merged, result
        self.shown = shown
        names = dict(FUNCTIONS) | _FUNCTIONS
        parameters = "", "row, acc", "acc, other", "acc"
        functions = [
            eval(compile(f"lambda {of}: {text}", f"<{shown}>", "eval"), names)  # noqa: S307 - see RowExpression
            for of, text in zip(parameters, self._texts, strict=True)
        ]
        # Attributes of the object, so a record costs one call.
        self.create_accumulator, self.add, self.merge, self.get_result = functions  # type: ignore[method-assign]

    def create_accumulator(self) -> Any:
        """A tuple with the first value of each slot."""

    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with a row added."""

    def get_result(self, accumulator: Any) -> Any:
        """The values of the aggregates, as a tuple."""

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """The accumulator of both."""

    def __repr__(self) -> str:
        return self.shown

    def __reduce__(self) -> tuple[Any, ...]:
        return RowAggregate, (*self._texts, self.shown)


class RowsWithWindow:
    """Creates rows of values and the start, end and time of a window."""

    def __init__(self, names: Sequence[str], *, in_utc: bool) -> None:
        self._names = list(names)
        self._in_utc = in_utc
        self._row = Row(*names)

    def _of(self, values: Iterable[Any], window: TimeWindow) -> Row:
        start, end = from_epoch_ms(window.start), from_epoch_ms(window.end)
        time = from_epoch_ms(window.max_timestamp(), in_utc=self._in_utc)
        return self._row(*values, start, end, time)


class AggregatedRow(RowsWithWindow, WindowFunction[Any, Row, Any, TimeWindow]):
    """The row of a window: the keys, the results of RowAggregate, and the window."""

    def apply(self, key: Any, window: TimeWindow, inputs: Iterable[Any]) -> Iterator[Row]:
        """One row."""
        for results in inputs:
            yield self._of((*key, *results), window)


class RowsOfWindow(RowsWithWindow, WindowFunction[Any, Row, Any, TimeWindow]):
    """The rows of a window, with its start, end and time. Flink: WindowTableFunction."""

    def apply(self, key: Any, window: TimeWindow, inputs: Iterable[Any]) -> Iterator[Row]:  # noqa: ARG002
        """The rows."""
        for row in inputs:
            yield self._of(row, window)


class RowsOfAll(RowsWithWindow, AllWindowFunction[Any, Row, TimeWindow]):
    """As RowsOfWindow, without keys. If the input is the result of RowAggregate, there is one row."""

    def apply(self, window: TimeWindow, inputs: Iterable[Any]) -> Iterator[Row]:
        """The rows."""
        for row in inputs:
            yield self._of(row, window)


def only_field(row: Any) -> tuple[Any]:
    """The key of a query with one key. It is a tuple, because the value may be None."""
    return (row[0],)


class RowsWithWindows(RowsWithWindow, FlatMapFunction[Any, Row]):
    """A row for each window of a row, with the window's start, end and time. Flink: WindowTableFunction.

    Args:
        names: The names of the columns.
        assigner: The windows.
        place: The column that has the event time.
        in_utc: Whether the window's time is a TIMESTAMP_LTZ.
    """

    def __init__(self, names: Sequence[str], assigner: Any, place: int, *, in_utc: bool) -> None:
        super().__init__(names, in_utc=in_utc)
        self._assigner = assigner
        self._place = place

    def flat_map(self, value: Any) -> Iterator[Row]:
        """The rows, the one of the earliest window first."""
        context: Any = None  # assigners of SQL's windows need none
        windows = self._assigner.assign_windows(value, epoch_ms(value[self._place]), context)
        for window in reversed(list(windows)):
            yield self._of(value, window)
