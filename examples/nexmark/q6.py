"""q6 - the average of each seller's last eleven sales.

The winning bids (see winning_bids.py) of a seller's auctions are sorted by time. The result of an auction is the
average price of its winning bid and up to ten bids before it, truncated to an integer.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

from examples.nexmark.periodic_rows import PeriodicRows
from examples.nexmark.streams import Result
from examples.nexmark.winning_bids import winning_bids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

BEFORE = 10


def build(events: Events) -> Result:
    """The winning bids by auction, then their averages by seller."""
    timed = events.timed
    auctions = timed.auctions("id", "dateTime", "expires", "seller").map(
        lambda auction: (auction.id, auction.dateTime, auction.expires, auction.seller)
    )
    bids = timed.bids("auction", "price", "dateTime").map(
        lambda bid: (bid.auction, bid.price, bid.dateTime)
    )
    sales = winning_bids(auctions, bids).key_by(lambda lead: lead[0][3])
    return Result(sales.process(LastSales()).name("averages"), key=("seller", "id"))


class Sales:
    """The sorted sales of a seller, (time, auction, price), and the index of the first one that has changed."""

    __slots__ = ("changed_from", "sorted")

    def __init__(self) -> None:
        self.sorted: list[tuple[int, int, int]] = []
        self.changed_from = 0


class LastSales(PeriodicRows):
    """The averages of a seller."""

    def create(self) -> Sales:
        """No sales yet."""
        return Sales()

    def fold(self, folded: Sales, value: Any) -> None:
        """Inserts the sale of an auction with a better bid, and removes its previous sale."""
        (auction, *_), before, best = value
        sales, changed = folded.sorted, [folded.changed_from]
        if before is not None:
            place = bisect_left(sales, (before[2], auction))
            del sales[place]
            changed.append(place)
        sale = (best[2], auction, best[1])
        insort(sales, sale)
        folded.changed_from = min(*changed, bisect_left(sales, sale))

    def rows(self, key: int, folded: Sales) -> Iterator[Row]:
        """A row for each sale that has changed or follows one that has changed."""
        sales = folded.sorted
        for end in range(folded.changed_from + 1, len(sales) + 1):
            prices = [price for _, _, price in sales[max(0, end - BEFORE - 1) : end]]
            average = sum(prices) // len(prices)
            yield {"seller": key, "id": sales[end - 1][1], "avg_price": average}
        folded.changed_from = len(sales)
