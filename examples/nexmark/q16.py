"""q16 - the statistics of q15 for each channel and day, with the last minute of the day that has a bid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_statistics import BidStatistics
from examples.nexmark.calendar import MINUTE_MS, day_and_minute
from examples.nexmark.periodic_rows import PeriodicRows
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """One key for each channel and day."""
    bids = events.timed.bids("channel", "auction", "bidder", "price", "dateTime").map(
        lambda bid: (bid.channel, bid.dateTime // MINUTE_MS, bid.auction, bid.bidder, bid.price)
    )
    keyed = bids.key_by(lambda bid: (bid[0], bid[1] // 1440))
    return Result(keyed.process(ChannelStatistics()), key=("channel", "day"))


class ChannelStatistics(PeriodicRows):
    """The statistics of a channel on a day."""

    def create(self) -> tuple[BidStatistics, list[int]]:
        """No bids yet."""
        return BidStatistics(), [0]

    def fold(self, folded: tuple[BidStatistics, list[int]], value: Any) -> None:
        """One bid more."""
        statistics, last_minute = folded
        _, minute, auction, bidder, price = value
        statistics.add(auction, bidder, price)
        last_minute[0] = max(last_minute[0], minute)

    def rows(self, key: Any, folded: tuple[BidStatistics, list[int]]) -> Iterator[Row]:
        """One row."""
        statistics, (last_minute,) = folded
        day, minute = day_and_minute(last_minute * MINUTE_MS)
        yield {"channel": key[0], "day": day, "minute": minute, **statistics.columns()}
