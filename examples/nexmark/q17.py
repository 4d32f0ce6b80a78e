"""q17 - auction statistics of each day: bids by level of price, and the least, greatest and average price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.nexmark.bid_statistics import RANK2, RANK3
from examples.nexmark.calendar import DAY_MS, day
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events


def build(events: Events) -> Result:
    """A reduce that adds up the statistics of bids."""
    bids = events.bids("auction", "price", "dateTime").map(statistics)
    sums = bids.key_by(lambda sums: (sums[0], sums[1])).reduce(added)
    return Result(sums.map(row), key=("auction", "day"))


def statistics(bid: Bid) -> tuple[int, ...]:
    """The statistics of one bid: auction, day, bids, bids of level 1, 2 and 3, least price, greatest price, sum."""
    price = bid.price
    rank1, rank3 = int(price < RANK2), int(price >= RANK3)
    levels = (1, rank1, 1 - rank1 - rank3, rank3)
    return (bid.auction, bid.dateTime // DAY_MS, *levels, price, price, price)


def added(a: Any, b: Any) -> tuple[int, ...]:
    """The statistics of both inputs together."""
    auction, on_day, total1, low1, middle1, high1, least1, greatest1, sum1 = a
    _, _, total2, low2, middle2, high2, least2, greatest2, sum2 = b
    return (
        auction,
        on_day,
        total1 + total2,
        low1 + low2,
        middle1 + middle2,
        high1 + high2,
        min(least1, least2),
        max(greatest1, greatest2),
        sum1 + sum2,
    )


def row(sums: Any) -> Row:
    """One row of the result."""
    auction, on_day, total, low, middle, high, least, greatest, sum_price = sums
    return {
        "auction": auction,
        "day": day(on_day * DAY_MS),
        "total_bids": total,
        "rank1_bids": low,
        "rank2_bids": middle,
        "rank3_bids": high,
        "min_price": least,
        "max_price": greatest,
        "avg_price": sum_price // total,
        "sum_price": sum_price,
    }
