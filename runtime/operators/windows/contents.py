"""What a window keeps of its records: one reduced value, one accumulator, or all of them.

Flink: the state descriptor that `WindowOperatorBuilder` chooses, and the wrappers around the window
function (`InternalSingleValue...`, `InternalIterable...`, `InternalAggregate...`) that go with it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.functions.aggregate_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.callables import as_function

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from opchain.runtime.operators.specs import WindowSpec


class Contents(Protocol):
    """How the contents of a window take in records, and what the window function sees of them.

    A pane maps keys to contents: it is one window for all keys. Contents of None are none, as in Flink.
    """

    def add(self, pane: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Takes a record into a key's contents."""

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """What the window function gets; None where there is nothing to evaluate."""

    def merge(self, contents: Any, others: Any) -> Any:
        """The contents of two windows as one; may change and give the first."""

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """What it gets where the records were kept for an evictor, and these are left.

        Flink calls the function with null where an evictor leaves a reduce no record; here it is
        not called.
        """


class ReducedContents:
    """One value, combined as records come."""

    def __init__(self, function: Any) -> None:
        self.reduce = as_function(ReduceFunction, function).reduce

    def add(self, pane: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Combines the record with the value; the first record is the value."""
        previous = pane.get(key)
        pane[key] = value if previous is None else self.reduce(previous, value)

    def result(self, contents: Any) -> Any:
        """The value."""
        return contents

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """The one value."""
        return None if contents is None else (contents,)

    def merge(self, contents: Any, others: Any) -> Any:
        """Combines two values."""
        return self.reduce(contents, others)

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """All records as one value."""
        return self.elements(functools.reduce(self.reduce, records) if records else None)


class AggregatedContents:
    """One accumulator, which folds records in as they come."""

    def __init__(self, function: AggregateFunction[Any, Any, Any]) -> None:
        self.create = function.create_accumulator
        self.fold_in = function.add
        self.result_of = function.get_result
        self.unite = function.merge

    def add(self, pane: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Folds the record in."""
        accumulator = pane.get(key)
        if accumulator is None:
            accumulator = self.create()
        pane[key] = self.fold_in(value, accumulator)

    def result(self, contents: Any) -> Any:
        """The accumulator's result; None is no result, as in Flink."""
        return None if contents is None else self.result_of(contents)

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """The one result."""
        result = self.result(contents)
        return None if result is None else (result,)

    def merge(self, contents: Any, others: Any) -> Any:
        """Merges two accumulators."""
        return self.unite(contents, others)

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """The result of all records, or of none at all."""
        accumulator = self.create()
        for record in records:
            accumulator = self.fold_in(record, accumulator)
        return self.elements(accumulator)


class BufferedContents:
    """All records, in the order in which they came."""

    def add(self, pane: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Appends the record."""
        records = pane.get(key)
        if records is None:
            pane[key] = [value]
        else:
            records.append(value)

    def elements(self, contents: list[Any]) -> Iterable[Any] | None:
        """The records; a list of its own, which the function may change."""
        return contents[:]

    def merge(self, contents: list[Any], others: list[Any]) -> list[Any]:
        """Appends the others."""
        contents += others
        return contents

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """The records themselves."""
        return records


def contents_of(spec: WindowSpec) -> ReducedContents | AggregatedContents | BufferedContents:
    """What the windows of a spec keep."""
    if spec.reduce is not None:
        return ReducedContents(spec.reduce)
    if spec.aggregate is not None:
        return AggregatedContents(spec.aggregate)
    return BufferedContents()
