"""q10 - log to files: all bids with their day and minute, in a folder for each minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.nexmark.calendar import day_and_minute
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """A map. The sink creates the folders."""
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    return Result(bids.map(row), folders=("dt", "hm"))


def row(bid: Bid) -> Row:
    """One row of the result."""
    day, minute = day_and_minute(bid.dateTime)
    return {
        "auction": bid.auction,
        "bidder": bid.bidder,
        "price": bid.price,
        "dateTime": bid.dateTime,
        "extra": bid.extra,
        "dt": day,
        "hm": minute,
    }
