"""q12 - processing-time windows: how many bids of each bidder are read in 10 seconds of the clock.

Like q11 and q5, but of machine time: what it returns differs from run to run, and windows that are open
when the input ends are dropped, as Flink does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.bid_counts import Count, PerWindow
from examples.nexmark.streams import Result
from opchain.common import Duration
from opchain.datastream.window import TumblingProcessingTimeWindows

if TYPE_CHECKING:
    from examples.nexmark.streams import Events

SIZE = Duration.of_seconds(10)


def build(events: Events) -> Result:
    """Tumbling windows by bidder."""
    bids = events.bids("bidder").map(lambda bid: bid.bidder)
    windows = bids.key_by(lambda bidder: bidder).window(TumblingProcessingTimeWindows.of(SIZE))
    return Result(windows.aggregate(Count(), PerWindow()).name("count"))
