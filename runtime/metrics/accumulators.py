"""Accumulators: subtasks add to them, and the driver merges them by name when the job ends.

A function registers an accumulator in `open` by `runtime_context.add_accumulator(name, accumulator)`.
`JobExecutionResult.get_accumulator_result(name)` returns the merged value.

Flink: `org.apache.flink.api.common.accumulators`, with its class names.
"""

from __future__ import annotations

import copy
import pickle
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self


V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """Accumulates values of type V to a result of type R. Users may write subclasses.

    `merge` must give the same result in any order, and accumulators must be picklable.
    """

    @abstractmethod
    def add(self, value: V) -> None:
        """Adds a value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """The result of the values of this subtask so far."""

    @abstractmethod
    def reset_local(self) -> None:
        """Removes all values."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Adds all values of another accumulator of the same class."""

    def clone(self) -> Self:
        """An independent copy."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()!r})"


class _Sum(Accumulator[V, V]):
    _sum: Any

    def add(self, value: V) -> None:
        """Adds."""
        self._sum += value

    def get_local_value(self) -> V:
        """The sum."""
        total: V = self._sum
        return total

    def reset_local(self) -> None:
        """Back to 0."""
        self._sum = type(self._sum)()

    def merge(self, other: Self) -> None:
        """Adds the other's sum."""
        self._sum += other._sum


class LongCounter(_Sum[int]):
    """Adds up integers, from 0.

    >>> counter = LongCounter()
    >>> counter.add(2)
    >>> counter.get_local_value()
    2
    """

    def __init__(self, value: int = 0) -> None:
        self._sum = value


class IntCounter(LongCounter):
    """Adds up integers. Java's counter has 32 bits and wraps around; this one has no limit."""


class DoubleCounter(_Sum[float]):
    """Adds up floats, from 0.0."""

    def __init__(self, value: float = 0.0) -> None:
        self._sum = float(value)


class AverageAccumulator(Accumulator[float, float]):
    """The mean of numbers; 0.0 without numbers, as in Flink."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Adds a number."""
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        """The mean."""
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        """Removes all numbers."""
        self._count = 0
        self._sum = 0.0

    def merge(self, other: Self) -> None:
        """Adds the numbers of the other accumulator."""
        self._count += other._count
        self._sum += other._sum


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each number was added, in ascending order of the numbers, without bins."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Counts a number."""
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        """A copy of the counts by number."""
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        """Removes all numbers."""
        self._counts = {}

    def merge(self, other: Self) -> None:
        """Adds the other's counts."""
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


class _Extreme(Accumulator[float, float]):
    """The minimum or maximum of numbers; `start` without numbers."""

    start: float

    def __init__(self, value: float | None = None) -> None:
        self._value = self.start if value is None else value

    def get_local_value(self) -> float:
        """The number."""
        return self._value

    def reset_local(self) -> None:
        """Removes the number."""
        self._value = self.start

    def merge(self, other: Self) -> None:
        """Adds the number of the other accumulator."""
        self.add(other._value)


class _Minimum(_Extreme):
    def add(self, value: float) -> None:
        """Takes a number."""
        self._value = min(self._value, value)


class _Maximum(_Extreme):
    def add(self, value: float) -> None:
        """Takes a number."""
        self._value = max(self._value, value)


class IntMinimum(_Minimum):
    """The minimum of integers; 2**31 - 1 without values."""

    start = 2**31 - 1


class IntMaximum(_Maximum):
    """The maximum of integers; -(2**31) without values."""

    start = -(2**31)


class LongMinimum(_Minimum):
    """The minimum of integers; 2**63 - 1 without values."""

    start = 2**63 - 1


class LongMaximum(_Maximum):
    """The maximum of integers; -(2**63) without values."""

    start = -(2**63)


class DoubleMinimum(_Minimum):
    """The minimum of floats; infinity without values."""

    start = float("inf")


class DoubleMaximum(_Maximum):
    """The maximum of floats; minus infinity without values."""

    start = float("-inf")


class ListAccumulator(Accumulator[Any, list[Any]]):
    """A list of all values, subtask by subtask, each in its order. It must fit into the driver's memory."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def add(self, value: Any) -> None:
        """Appends a value."""
        self._items.append(value)

    def get_local_value(self) -> list[Any]:
        """A copy of the values."""
        return list(self._items)

    def reset_local(self) -> None:
        """Removes all items."""
        self._items = []

    def merge(self, other: Self) -> None:
        """Appends the values of the other accumulator."""
        self._items += other._items


class AccumulatorError(StreamError):
    """An accumulator has no value: the values of its subtasks cannot be merged, or its class raised an exception.

    What to do: Use one class for all accumulators of a name, and correct its `merge`.
    """


class SentAccumulator(NamedTuple):
    """The accumulator of one operator and subtask, as received by the driver."""

    operator: str
    name: str
    pickled: bytes


@dataclass(frozen=True, slots=True)
class FailedAccumulator:
    """The error of an accumulator without a value.

    It is raised when the value is requested; the job itself does not fail.

    Flink: `FailedAccumulatorSerialization`.
    """

    error: str


def merge_accumulators(sent: Iterable[SentAccumulator]) -> dict[str, Any]:
    """The merged value, or a FailedAccumulator, by name. Names and subtasks have the order of `sent`."""
    by_name: dict[str, list[SentAccumulator]] = {}
    for accumulator in sent:
        by_name.setdefault(accumulator.name, []).append(accumulator)
    return {name: _merged(same_name) for name, same_name in by_name.items()}


def _merged(sent: list[SentAccumulator]) -> Any:
    try:
        first, *others = ((item.operator, _read(item)) for item in sent)
        operator, merged = first
        for other_operator, other in others:
            kind, other_kind = type(merged).__qualname__, type(other).__qualname__
            if kind != other_kind:
                return FailedAccumulator(
                    f"it is a {kind} in '{operator}' and a {other_kind} in '{other_operator}'; "
                    "use different names, or one class"
                )
            merged.merge(other)
        return merged.get_local_value()
    except Exception as error:  # noqa: BLE001 - the accumulator may be the user's
        return FailedAccumulator(f"{type(error).__name__}: {error}")


def _read(sent: SentAccumulator) -> Accumulator[Any, Any]:
    accumulator: Accumulator[Any, Any] = pickle.loads(sent.pickled)
    return accumulator
