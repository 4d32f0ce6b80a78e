"""q6 - the average of each seller's last eleven sales.

The winning bids (see winning_bids.py) of a seller's auctions, in the order of their times: each auction gets
the average price of its own and the up to ten bids before it, cut to a whole number.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor

from examples.nexmark.streams import Result
from examples.nexmark.winning_bids import winning_bids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream.functions import RuntimeContext

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

BEFORE = 10


def build(events: Events) -> Result:
    """The winning bids by auction, then their averages by seller."""
    auctions = events.auctions("id", "dateTime", "expires", "seller").map(
        lambda auction: (auction.id, auction.dateTime, auction.expires, auction.seller)
    )
    bids = events.bids("auction", "price", "dateTime").map(
        lambda bid: (bid.auction, bid.price, bid.dateTime)
    )
    sales = winning_bids(auctions, bids).key_by(lambda lead: lead[0][3])
    return Result(sales.process(LastSales()).name("averages"), key=("seller", "id"))


class LastSales(KeyedProcessFunction[int, Any, "Row"]):
    """For one seller: the sales in the order of (time, auction), with their prices."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        self.sales = runtime_context.get_state(
            ValueStateDescriptor("sales", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterator[Row]:
        """Puts a sale where it belongs now; emits the averages that this changes."""
        auction, before, best = value
        sales = self.sales.value() or []
        changed = len(sales)
        if before is not None:
            changed = bisect_left(sales, (before[2], auction[0]))
            del sales[changed]
        sale = (best[2], auction[0], best[1])
        insort(sales, sale)
        place = bisect_left(sales, sale)
        self.sales.update(sales)
        last = max(changed, place) + BEFORE
        for number in range(min(changed, place), min(last + 1, len(sales))):
            prices = [price for _, _, price in sales[max(0, number - BEFORE) : number + 1]]
            yield {
                "seller": ctx.get_current_key(),
                "id": sales[number][1],
                "avg_price": sum(prices) // len(prices),
            }
