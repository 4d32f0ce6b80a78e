"""Counts the bids of a window, for q5, q11 and q12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.datastream.functions import AggregateFunction, ProcessWindowFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from examples.nexmark.model import Row


class Count(AggregateFunction[Any, int, int]):
    """The number of bids."""

    def create_accumulator(self) -> int:
        """None yet."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """One more."""
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """The count."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """Both together."""
        return acc_a + acc_b


class PerWindow(ProcessWindowFunction[int, "Row", int, Any]):
    """Returns a row with the window and the number of a bidder's bids."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Row]:
        """One row."""
        window = context.window()
        for count in elements:
            yield {
                "bidder": key,
                "bid_count": count,
                "starttime": window.start,
                "endtime": window.end,
            }
