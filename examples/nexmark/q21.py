"""q21 - channel id: by name for big channels, from the URL for others. Bids without an id are dropped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events

KNOWN = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
IN_URL = re.compile(r"(?:^|&)channel_id=([^&]*)")


def build(events: Events) -> Result:
    """A flat map that returns one row or none."""
    return Result(events.bids("auction", "bidder", "price", "channel", "url").flat_map(with_id))


def with_id(bid: Bid) -> Iterator[Row]:
    """The row of a bid whose channel has an id."""
    channel_id = KNOWN.get(bid.channel.lower())
    if channel_id is None:
        found = IN_URL.search(bid.url)
        if found is None:
            return
        channel_id = found[1]
    yield {
        "auction": bid.auction,
        "bidder": bid.bidder,
        "price": bid.price,
        "channel": bid.channel,
        "channel_id": channel_id,
    }
