"""The functions that implement window joins and co-groups.

Like Flink's `CoGroupedStreams`, both consist of two maps that tag the records, a union, a `key_by` and a window. The
functions have Flink's names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.callables import accept_collectors, as_function
from opchain.runtime.functions.function import Function, RuntimeContext
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.functions.record_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    MapFunction,
)
from opchain.runtime.functions.window import WindowFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


FIRST, SECOND = 1, 2


class InputTagger(MapFunction[Any, tuple[int, Any]]):
    """Tags each record with the number of its input.

    >>> InputTagger(SECOND).map("a")
    (2, 'a')
    """

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def of_number(self) -> str:
        """The name of the input's selector in a UnionKeySelector."""
        return "first" if self.number == FIRST else "second"

    def map(self, value: Any) -> tuple[int, Any]:
        """The record with the number of its input."""
        return (self.number, value)


class _Wrapper(Function):
    """Opens and closes the wrapped functions."""

    def __init__(self, *inner: Function) -> None:
        self.inner = inner

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the wrapped functions."""
        for function in self.inner:
            accept_collectors(function)
            function.open(runtime_context)

    def close(self) -> None:
        """Closes the wrapped functions."""
        for function in self.inner:
            function.close()


class UnionKeySelector(_Wrapper, KeySelector[tuple[int, Any], Any]):
    """Calls the key selector of the input that a tagged record comes from."""

    def __init__(self, selector1: Any, selector2: Any) -> None:
        first = as_function(KeySelector, selector1)
        second = as_function(KeySelector, selector2)
        super().__init__(first, second)
        self.first: KeySelector[Any, Any] = first
        self.second: KeySelector[Any, Any] = second

    def get_key(self, value: tuple[int, Any]) -> Any:
        """The key of a tagged record."""
        number, record = value
        return (self.first if number == FIRST else self.second).get_key(record)


class CoGroupWindowFunction(_Wrapper, WindowFunction[tuple[int, Any], Any, Any, Any]):
    """Splits the records of a window by input, and passes both lists to a CoGroupFunction."""

    def __init__(self, function: Any) -> None:
        self.function = as_function(CoGroupFunction, function)
        super().__init__(self.function)

    def apply(
        self,
        key: Any,  # noqa: ARG002 - a CoGroupFunction gets neither key nor window
        window: Any,  # noqa: ARG002
        inputs: Iterable[tuple[int, Any]],
    ) -> Iterable[Any]:
        """The results of one window."""
        sides: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for number, record in inputs:
            sides[number].append(record)
        return self.function.co_group(sides[FIRST], sides[SECOND]) or ()


class JoinCoGroupFunction(_Wrapper, CoGroupFunction[Any, Any, Any]):
    """Implements a join as a co-group: it calls the join function with each pair of records."""

    def __init__(self, function: Any) -> None:
        self._is_flat = isinstance(function, FlatJoinFunction)
        self.function = function if self._is_flat else as_function(JoinFunction, function)
        super().__init__(self.function)

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        """The results of all pairs. The second side is the inner loop."""
        right = list(second)
        # Many keys of a window have records on one side only: a generator for each costs more than the join.
        return self._joined(first, right) if right and first else ()

    def _joined(self, first: Iterable[Any], right: list[Any]) -> Iterator[Any]:
        join = self.function.join
        if self._is_flat:
            for one in first:
                for other in right:
                    yield from join(one, other) or ()
        else:
            for one in first:
                for other in right:
                    yield join(one, other)
