"""q2 - selection: the bids for auctions whose id is a multiple of 123."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """A filter and a map."""
    found = events.bids("auction", "price").filter(lambda bid: bid.auction % 123 == 0)
    return Result(found.map(lambda bid: {"auction": bid.auction, "price": bid.price}))
