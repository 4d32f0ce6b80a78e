"""q0 - pass through: every bid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """Nothing but parsing and writing."""
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    rows = bids.map(
        lambda bid: {
            "auction": bid.auction,
            "bidder": bid.bidder,
            "price": bid.price,
            "dateTime": bid.dateTime,
            "extra": bid.extra,
        }
    )
    return Result(rows)
