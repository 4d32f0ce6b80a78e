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
    """Takes values of type V, and is worth an R; subclasses may be the user's.

    `merge` must not care about order, and instances must pickle.
    """

    @abstractmethod
    def add(self, value: V) -> None:
        """Takes a value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """The result of the values of this subtask so far."""

    @abstractmethod
    def reset_local(self) -> None:
        """Removes all values."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Takes all values of another accumulator of the same kind."""

    def clone(self) -> Self:
        """A copy that shares nothing with this one."""
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
    """Adds up integers; Java's is 32 bits wide and wraps around, this one is as wide as needed."""


class DoubleCounter(_Sum[float]):
    """Adds up floats, from 0.0."""

    def __init__(self, value: float = 0.0) -> None:
        self._sum = float(value)


class AverageAccumulator(Accumulator[float, float]):
    """The mean of numbers; 0.0 of none, as in Flink."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Takes a number."""
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
        """Takes the other's numbers."""
        self._count += other._count
        self._sum += other._sum


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each number came, in ascending order of the numbers; nothing is put into bins."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Counts a number."""
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        """Count by number; a copy."""
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        """Removes all numbers."""
        self._counts = {}

    def merge(self, other: Self) -> None:
        """Adds the other's counts."""
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


class _Extreme(Accumulator[float, float]):
    """The least or greatest number; `start` where there is none."""

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
        """Takes the other's number."""
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
    """The least of integers; 2**31 - 1 of none."""

    start = 2**31 - 1


class IntMaximum(_Maximum):
    """The greatest of integers; -(2**31) of none."""

    start = -(2**31)


class LongMinimum(_Minimum):
    """The least of integers; 2**63 - 1 of none."""

    start = 2**63 - 1


class LongMaximum(_Maximum):
    """The greatest of integers; -(2**63) of none."""

    start = -(2**63)


class DoubleMinimum(_Minimum):
    """The least of floats; infinity of none."""

    start = float("inf")


class DoubleMaximum(_Maximum):
    """The greatest of floats; minus infinity of none."""

    start = float("-inf")


class ListAccumulator(Accumulator[Any, list[Any]]):
    """Keeps everything: subtask after subtask, each in its order. It must fit into the driver."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def add(self, value: Any) -> None:
        """Appends."""
        self._items.append(value)

    def get_local_value(self) -> list[Any]:
        """The items; a copy."""
        return list(self._items)

    def reset_local(self) -> None:
        """Removes all items."""
        self._items = []

    def merge(self, other: Self) -> None:
        """Appends the other's items."""
        self._items += other._items


class AccumulatorError(StreamError):
    """An accumulator has no value: its subtasks' values cannot be merged, or its class raised.

    What to do: Add accumulators of one class under one name, and correct its `merge`.
    """


class SentAccumulator(NamedTuple):
    """The accumulator of one operator and subtask, as it reached the driver."""

    operator: str
    name: str
    pickled: bytes


@dataclass(frozen=True, slots=True)
class FailedAccumulator:
    """In place of a value: why there is none. Whoever asks for the value gets the error, not the job.

    Flink: `FailedAccumulatorSerialization`.
    """

    error: str


def merge_accumulators(sent: Iterable[SentAccumulator]) -> dict[str, Any]:
    """The merged value, or a FailedAccumulator, by name; names and subtasks in the order of `sent`."""
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
