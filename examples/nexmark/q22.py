"""q22 - URL directories: the three parts between the third and the sixth slash of a bid's URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events

DIRECTORIES = slice(3, 6)


def build(events: Events) -> Result:
    """A map."""
    return Result(events.bids("auction", "bidder", "price", "channel", "url").map(row))


def row(bid: Bid) -> Row:
    """One row of the result. Missing directories are null."""
    dir1, dir2, dir3 = (*bid.url.split("/", 6)[DIRECTORIES], None, None, None)[:3]
    return {
        "auction": bid.auction,
        "bidder": bid.bidder,
        "price": bid.price,
        "channel": bid.channel,
        "dir1": dir1,
        "dir2": dir2,
        "dir3": dir3,
    }
