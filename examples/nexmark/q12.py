"""q12 - processing-time windows: how many bids of each bidder are read in each 10 seconds of processing time.

The result differs from run to run, because it depends on the speed of the machine. Windows that are still open
at the end of the input are dropped, as in Flink.
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
