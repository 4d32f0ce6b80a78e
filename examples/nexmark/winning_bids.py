"""The winning bid of each auction, for q4, q6 and q9.

A bid is valid if it is made while its auction is open, both ends included. The valid bid with the highest price wins,
and the earliest one of these. A bid may arrive before or after its auction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.common import Types
from opchain.datastream.functions import KeyedCoProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import DataStream
    from opchain.datastream.functions import RuntimeContext

Lead = tuple[Any, Any, Any]
"""An auction, its previous winning bid or None, and the better bid: all of them tuples."""


def winning_bids(auctions: DataStream[Any], bids: DataStream[Any]) -> DataStream[Lead]:
    """Emits a `Lead` for each better bid, and when an auction arrives after its first bids.

    Args:
        auctions: Tuples that begin with id, dateTime, expires.
        bids: Tuples that begin with auction, price, dateTime.
    """
    keyed = auctions.key_by(lambda auction: auction[0])
    leads = keyed.connect(bids.key_by(lambda bid: bid[0])).process(WinningBid())
    return leads.name("winning bids")


class WinningBid(KeyedCoProcessFunction[int, Any, Any, Lead]):
    """Finds the winning bid so far of an auction."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        anything = Types.PICKLED_BYTE_ARRAY()
        self.auction = runtime_context.get_state(ValueStateDescriptor("auction", anything))
        self.best = runtime_context.get_state(ValueStateDescriptor("best bid", anything))
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("bids before their auction", anything)
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Lead]:
        """Checks the bids that arrived before the auction."""
        self.auction.update(value)
        valid = [bid for bid in self.early.get() if is_valid(bid, value)]
        self.early.clear()
        if valid:
            best = min(valid, key=rank)
            self.best.update(best)
            yield value, None, best

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Lead]:
        """A bid."""
        auction = self.auction.value()
        if auction is None:
            self.early.add(value)
        elif is_valid(value, auction):
            best = self.best.value()
            if best is None or rank(value) < rank(best):
                self.best.update(value)
                yield auction, best, value


def is_valid(bid: Any, auction: Any) -> bool:
    """Whether a bid was made while its auction was open."""
    begin, end = auction[1:3]
    return bool(begin <= bid[2] <= end)


def rank(bid: Any) -> tuple[int, int]:
    """The sort key: a better bid has a lower one."""
    _, price, time = bid[:3]
    return -price, time
