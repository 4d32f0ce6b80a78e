"""q5 - hot items: the auctions with the most bids in the last 10 seconds, every 2 seconds.

Two windows, one after the other: the first counts by auction; its results have the last millisecond of
their window as their time, so the second, as long as a step of the first, gathers the counts of just one
window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_counts import Count
from examples.nexmark.streams import LATE, Result
from opchain.common import Duration
from opchain.datastream.functions import ProcessWindowFunction
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
        .process(Hottest())
        .name("hottest")
    )
    return Result(hottest, late={"bid": counts.get_side_output(LATE)})


class WithWindow(ProcessWindowFunction[int, Any, int, Any]):
    """A count -> (start, end, count, auction)."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        """Adds what the count belongs to."""
        window = context.window()
        for count in elements:
            yield window.start, window.end, count, key


class Hottest(ProcessWindowFunction[Any, "Row", int, Any]):
    """The auctions with the greatest count, several on a tie."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Row]:
        """One row for each."""
        counts = list(elements)
        greatest = max(count for _, _, count, _ in counts)
        for start, end, count, auction in counts:
            if count == greatest:
                yield {"auction": auction, "num": count, "starttime": start, "endtime": end}
