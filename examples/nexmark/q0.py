"""q0 - pass through: all bids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """Only parses and writes."""
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
