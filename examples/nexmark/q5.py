"""q5 - hot items: the auctions with the most bids in the last 10 seconds, every 2 seconds.

Two windows, one after the other. The first counts bids by auction. The timestamps of its results are the last
millisecond of their window. The second window is as long as a step of the first, so it gets the counts of exactly one
window. The compiler makes each subtask send only the greatest of its own counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_counts import Count
from examples.nexmark.streams import LATE, Result
from opchain.common import Duration
from opchain.datastream.functions import AggregateFunction, ProcessWindowFunction
from opchain.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

SIZE, STEP = Duration.of_seconds(10), Duration.of_seconds(2)


def build(events: Events) -> Result:
    """Counts by auction, then the greatest counts by window."""
    timed = events.timed
    counts = (
        timed.tuples(timed.bids("auction"))
        .key_by(lambda bid: bid[0])
        .window(SlidingEventTimeWindows.of(SIZE, STEP))
        .side_output_late_data(LATE)
        .aggregate(Count(), WithWindow())
        .name("count")
    )
    hottest = (
        counts.key_by(lambda count: count[0])
        .window(TumblingEventTimeWindows.of(STEP))
        .aggregate(Hottest())
        .name("hottest")
    )
    rows = hottest.flat_map(lambda counts: counts).map(row)
    return Result(rows, late={"bid": counts.get_side_output(LATE)})


class WithWindow(ProcessWindowFunction[int, Any, int, Any]):
    """Returns (start, end, count, auction) for a count."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        """Adds the window and the auction to the count."""
        window = context.window()
        for count in elements:
            yield window.start, window.end, count, key


class Hottest(AggregateFunction[Any, "list[Any]", "list[Any]"]):
    """The greatest count of a window, or several if they are equal."""

    def create_accumulator(self) -> list[Any]:
        """None yet."""
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        """Keeps the count if none is greater."""
        if not accumulator or value[2] > accumulator[0][2]:
            return [value]
        if value[2] == accumulator[0][2]:
            accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        """The counts."""
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        """The greatest counts of both."""
        if not acc_a or not acc_b or acc_a[0][2] == acc_b[0][2]:
            return acc_a + acc_b
        return max(acc_a, acc_b, key=lambda counts: counts[0][2])


def row(count: Any) -> Row:
    """One row of the result."""
    start, end, num, auction = count
    return {"auction": auction, "num": num, "starttime": start, "endtime": end}
