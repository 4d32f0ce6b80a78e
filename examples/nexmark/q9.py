"""q9 - winning bids: each auction with its best valid bid (see winning_bids.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.model import Auction
from examples.nexmark.streams import Result
from examples.nexmark.winning_bids import winning_bids

if TYPE_CHECKING:
    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

AUCTION = ("id", "dateTime", "expires", *(
    name for name in Auction._fields if name not in ("id", "dateTime", "expires")
))  # fmt: skip
BID = ("auction", "price", "dateTime", "bidder", "extra")


def build(events: Events) -> Result:
    """Emits a row whenever there is a better bid. The last row of an auction counts."""
    auctions = events.tuples(events.auctions(*AUCTION))
    bids = events.tuples(events.bids(*BID))
    return Result(winning_bids(auctions, bids).map(row), key=("id",))


def row(lead: Any) -> Row:
    """One row of the result."""
    auction, _, bid = lead
    _, price, time, bidder, extra = bid
    return {
        **dict(zip(AUCTION, auction, strict=True)),
        "auction": bid[0],
        "bidder": bidder,
        "price": price,
        "bid_dateTime": time,
        "bid_extra": extra,
    }
