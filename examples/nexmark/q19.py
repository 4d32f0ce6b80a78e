"""q19 - top ten: the highest bids of each auction. Of equal prices, the earlier bid is first."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Any

from examples.nexmark import q18
from examples.nexmark.model import Bid
from examples.nexmark.periodic_rows import PeriodicRows
from examples.nexmark.streams import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Events

TOP = 10


def build(events: Events) -> Result:
    """A short sorted list for each auction."""
    timed = events.timed
    bids = timed.tuples(timed.bids(*Bid._fields)).key_by(lambda bid: bid[0])
    return Result(bids.process(TopTen()).name("top ten"), key=("auction", "rank_number"))


class TopTen(PeriodicRows):
    """The highest bids of an auction."""

    def create(self) -> list[Any]:
        """None yet."""
        return []

    def fold(self, folded: list[Any], value: Any) -> None:
        """Inserts a bid after bids of the same rank."""
        if len(folded) < TOP or order(value) < order(folded[-1]):
            insort(folded, value, key=order)
            del folded[TOP:]

    def rows(self, key: Any, folded: list[Any]) -> Iterator[Row]:
        """A row for each bid."""
        for rank, bid in enumerate(folded, start=1):
            yield {**q18.row(bid), "rank_number": rank}


def order(bid: Any) -> tuple[int, int]:
    """The sort key: a better bid has a lower one."""
    return -bid[2], bid[5]
