"""q7 - the highest bid of every 10 seconds, or several with the same price.

One window over all bids. The compiler makes each source subtask send only the highest bids of each batch and window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.streams import LATE, Result
from opchain.common import Duration
from opchain.datastream.functions import AggregateFunction
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

SIZE = Duration.of_seconds(10)


def build(events: Events) -> Result:
    """The highest bids of all auctions."""
    timed = events.timed
    bids = timed.tuples(timed.bids("price", "auction", "bidder", "dateTime", "extra"))
    highest = (
        bids.window_all(TumblingEventTimeWindows.of(SIZE))
        .side_output_late_data(LATE)
        .aggregate(Highest())
        .name("highest")
    )
    rows = highest.flat_map(lambda bids: bids).map(row)
    return Result(rows, late={"bid": highest.get_side_output(LATE)})


class Highest(AggregateFunction[Any, "list[Any]", "list[Any]"]):
    """The bids with the highest price."""

    def create_accumulator(self) -> list[Any]:
        """None yet."""
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        """Keeps the bid if none is higher."""
        if not accumulator or value[0] > accumulator[0][0]:
            return [value]
        if value[0] == accumulator[0][0]:
            accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        """The bids."""
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        """The highest bids of both."""
        if not acc_a or not acc_b or acc_a[0][0] == acc_b[0][0]:
            return acc_a + acc_b
        return max(acc_a, acc_b, key=lambda bids: bids[0][0])


def row(bid: Any) -> Row:
    """One row of the result."""
    price, auction, bidder, time, extra = bid[:5]
    return {"auction": auction, "bidder": bidder, "price": price, "dateTime": time, "extra": extra}
