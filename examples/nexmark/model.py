"""The events of the auction site: persons sign up, auctions begin, bids are made.

Times are milliseconds since 1970, prices are cents. These classes list all fields. The records of a query
have only the fields that the query reads (see streams.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]
"""A row of a result: values by column."""


class Person(NamedTuple):
    """A person who signed up to sell or to bid."""

    id: int
    name: str
    emailAddress: str
    creditCard: str
    city: str
    state: str
    dateTime: int
    extra: str


class Auction(NamedTuple):
    """An auction, which is open from `dateTime` to `expires`, both included."""

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
    """A bid on an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    dateTime: int
    extra: str


KINDS: dict[str, type[Person | Auction | Bid]] = {"person": Person, "auction": Auction, "bid": Bid}
"""The kinds of events, in the order of their numbers (`event_type`)."""
