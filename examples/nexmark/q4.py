"""q4 - average closing price of the auctions of each category.

An auction's closing price is that of its winning bid (see winning_bids.py); auctions without one don't
count. Averages are cut to whole numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.streams import Result
from examples.nexmark.winning_bids import winning_bids

if TYPE_CHECKING:
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """A better bid changes the sum of its category by the difference to the bid before."""
    auctions = events.auctions("id", "dateTime", "expires", "category").map(
        lambda auction: (auction.id, auction.dateTime, auction.expires, auction.category)
    )
    bids = events.bids("auction", "price", "dateTime").map(
        lambda bid: (bid.auction, bid.price, bid.dateTime)
    )
    changes = winning_bids(auctions, bids).map(change)
    sums = changes.key_by(lambda change: change[0]).reduce(
        lambda a, b: (a[0], a[1] + b[1], a[2] + b[2])
    )
    rows = sums.map(lambda total: {"id": total[0], "final": total[1] // total[2]})
    return Result(rows, key=("id",))


def change(lead: Any) -> tuple[int, int, int]:
    """What a better bid adds to its category: (category, to the prices, to the number of auctions)."""
    auction, before, best = lead
    return (auction[3], best[1], 1) if before is None else (auction[3], best[1] - before[1], 0)
