"""q1 - currency: all bids, with prices multiplied by 0.908 in exact decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events

RATE = Decimal("0.908")


def build(events: Events) -> Result:
    """One map over the bids."""
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    return Result(bids.map(converted))


def converted(bid: Bid) -> Row:
    """The bid in the other currency."""
    return {
        "auction": bid.auction,
        "bidder": bid.bidder,
        "price": bid.price * RATE,
        "dateTime": bid.dateTime,
        "extra": bid.extra,
    }
