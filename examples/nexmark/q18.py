"""q18 - last bid of each bidder on each auction.

Of bids with the same time, the one later in the file is the last. Subtasks read the parts of a file in order, and a
keyed operator gets the records of several subtasks in the order of the subtasks, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.model import Bid
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """A reduce that keeps the later bid."""
    bids = events.tuples(events.bids(*Bid._fields))
    last = bids.key_by(lambda bid: (bid[0], bid[1])).reduce(
        lambda last, bid: bid if bid[5] >= last[5] else last
    )
    return Result(last.map(row), key=("auction", "bidder"))


def row(bid: Any) -> Row:
    """One row of the result."""
    auction, bidder, price, channel, url, time, extra = bid
    return {
        "auction": auction,
        "bidder": bidder,
        "price": price,
        "channel": channel,
        "url": url,
        "dateTime": time,
        "extra": extra,
    }
