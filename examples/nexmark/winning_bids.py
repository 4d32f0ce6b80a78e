"""The winning bid of each auction, which q4, q6 and q9 begin with.

A bid is valid if it is made while its auction lasts, both ends included. The best one wins: of the highest
price, and of the earliest time among these. Bid and auction match whichever comes first.
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
"""An auction, its winning bid so far or None, and the one that is better: all of them tuples."""


def winning_bids(auctions: DataStream[Any], bids: DataStream[Any]) -> DataStream[Lead]:
    """Emits whenever a better bid is known, or whenever the auction comes to bids that came before.

    Args:
        auctions: Tuples that begin with id, dateTime, expires.
        bids: Tuples that begin with auction, price, dateTime.
    """
    keyed = auctions.key_by(lambda auction: auction[0])
    leads = keyed.connect(bids.key_by(lambda bid: bid[0])).process(WinningBid())
    return leads.name("winning bids")


class WinningBid(KeyedCoProcessFunction[int, Any, Any, Lead]):
    """For one auction: which bid would win if there were no more."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declares the state."""
        anything = Types.PICKLED_BYTE_ARRAY()
        self.auction = runtime_context.get_state(ValueStateDescriptor("auction", anything))
        self.best = runtime_context.get_state(ValueStateDescriptor("best bid", anything))
        self.early = runtime_context.get_list_state(
            ListStateDescriptor("bids before their auction", anything)
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Lead]:
        """The auction: only now it is known which of the bids before are valid."""
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
    """Whether a bid was made while its auction lasted."""
    begin, end = auction[1:3]
    return bool(begin <= bid[2] <= end)


def rank(bid: Any) -> tuple[int, int]:
    """The lower, the better."""
    _, price, time = bid[:3]
    return -price, time
