"""q14 - calculation: bids with a medium price, in the other currency, with the name of their time of day."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from examples.nexmark.calendar import hour
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events

RATE = Decimal("0.908")
DAY, NIGHT, OTHER = "dayTime", "nightTime", "otherTime"
TIMES = (*[NIGHT] * 7, OTHER, *[DAY] * 11, OTHER, *[NIGHT] * 4)
"""The name of the time of day, by hour."""


def build(events: Events) -> Result:
    """A filter, which compares whole thousandths, and a map."""
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    found = bids.filter(lambda bid: 1_000_000_000 < bid.price * 908 < 50_000_000_000)
    return Result(found.map(row))


def row(bid: Bid) -> Row:
    """One row of the result."""
    return {
        "auction": bid.auction,
        "bidder": bid.bidder,
        "price": bid.price * RATE,
        "bidTimeType": TIMES[hour(bid.dateTime)],
        "dateTime": bid.dateTime,
        "extra": bid.extra,
        "c_counts": bid.extra.count("c"),
    }
