"""q20 - the bids on auctions of category 10, with their auction.

Bids and auctions match without a time limit, whichever arrives first. The join also gets auctions of other categories,
to drop their bids instead of keeping them in state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.model import Auction, Bid
from examples.nexmark.streams import Result
from opchain.common import Types
from opchain.datastream.functions import KeyedCoProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events
    from opchain.datastream.functions import RuntimeContext

CATEGORY = 10


def build(events: Events) -> Result:
    """Two streams, keyed by the auction, are inputs of one operator."""
    auctions = events.auctions(*Auction._fields).map(in_category)
    bids = events.tuples(events.bids(*Bid._fields))
    keyed = auctions.key_by(lambda auction: auction[0])
    return Result(keyed.connect(bids.key_by(lambda bid: bid[0])).process(BidsOfCategory()))


def in_category(auction: Auction) -> Any:
    """The columns of an auction, or only its id if it has a different category."""
    if auction.category != CATEGORY:
        return (auction.id, None)
    columns = {
        "itemName": auction.itemName,
        "description": auction.description,
        "initialBid": auction.initialBid,
        "reserve": auction.reserve,
        "auction_dateTime": auction.dateTime,
        "expires": auction.expires,
        "seller": auction.seller,
        "category": auction.category,
        "auction_extra": auction.extra,
    }
    return (auction.id, columns)


class BidsOfCategory(KeyedCoProcessFunction[int, Any, Any, "Row"]):
    """Joins an auction with its earlier and later bids."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        anything = Types.PICKLED_BYTE_ARRAY()
        self.auction = runtime_context.get_state(ValueStateDescriptor("auction", anything))
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("bids before their auction", anything)
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Row]:
        """Joins an auction with the bids that arrived before it."""
        self.auction.update(value)
        if value[1] is not None:
            for bid in self.early.get():
                yield row(bid, value[1])
        self.early.clear()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Row]:
        """Joins a bid with its auction, or keeps it until the auction arrives."""
        auction = self.auction.value()
        if auction is None:
            self.early.add(value)
        elif auction[1] is not None:
            yield row(value, auction[1])


def row(bid: Any, auction: Row) -> Row:
    """One row of the result."""
    auction_id, bidder, price, channel, url, time, extra = bid
    return {
        "auction": auction_id,
        "bidder": bidder,
        "price": price,
        "channel": channel,
        "url": url,
        "bid_dateTime": time,
        "bid_extra": extra,
        **auction,
    }
