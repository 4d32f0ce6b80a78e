"""q4 - average closing price of the auctions of each category.

An auction's closing price is the price of its winning bid (see winning_bids.py). Auctions without a winning
bid do not count. Averages are truncated to integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.streams import Result
from examples.nexmark.winning_bids import winning_bids

if TYPE_CHECKING:
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """Adds the difference between a better bid and the previous one to the sum of the category."""
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
    """The change by a better bid: (category, change of the sum, change of the number of auctions)."""
    auction, before, best = lead
    return (auction[3], best[1], 1) if before is None else (auction[3], best[1] - before[1], 0)
