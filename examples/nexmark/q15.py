"""q15 - bidding statistics of each day: bids, distinct bidders and distinct auctions by level of price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_statistics import BidStatistics
from examples.nexmark.calendar import DAY_MS, day
from examples.nexmark.periodic_rows import PeriodicRows
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """One key a day."""
    bids = events.timed.bids("auction", "bidder", "price", "dateTime").map(
        lambda bid: (bid.dateTime // DAY_MS, bid.auction, bid.bidder, bid.price)
    )
    return Result(bids.key_by(lambda bid: bid[0]).process(DayStatistics()), key=("day",))


class DayStatistics(PeriodicRows):
    """The statistics of a day."""

    def create(self) -> BidStatistics:
        """No bids yet."""
        return BidStatistics()

    def fold(self, folded: BidStatistics, value: Any) -> None:
        """One bid more."""
        _, auction, bidder, price = value
        folded.add(auction, bidder, price)

    def rows(self, key: int, folded: BidStatistics) -> Iterator[Row]:
        """One row."""
        yield {"day": day(key * DAY_MS), **folded.columns()}
