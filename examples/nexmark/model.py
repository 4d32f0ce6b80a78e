"""What happens on the auction site: persons sign up, auctions begin, bids are made.

Times are milliseconds since the epoch, prices are cents. A query gets records with the fields that it
asks for (see streams.py); these classes say what there is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]
"""A row of a result, by column."""


class Person(NamedTuple):
    """Somebody who signed up to sell or to bid."""

    id: int
    name: str
    emailAddress: str
    creditCard: str
    city: str
    state: str
    dateTime: int
    extra: str


class Auction(NamedTuple):
    """Something that is for sale from `dateTime` to `expires`, both included."""

    id: int
    itemName: str
    description: str
    initialBid: int
    reserve: int
    dateTime: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """An offer for an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    dateTime: int
    extra: str


KINDS: dict[str, type[Person | Auction | Bid]] = {"person": Person, "auction": Auction, "bid": Bid}
"""The kinds of events, in the order of their numbers (`event_type`)."""
