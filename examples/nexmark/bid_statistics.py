"""The numbers of bids, bidders and auctions by price level, for q15, q16 and q17."""

from __future__ import annotations

RANK2, RANK3 = 10_000, 1_000_000
"""The lowest prices of the second and the third level."""


class BidStatistics:
    """The number of bids, distinct bidders and distinct auctions, in total and for each price level."""

    __slots__ = ("auctions", "bidders", "bids")

    def __init__(self) -> None:
        self.bids = [0, 0, 0, 0]
        self.bidders: list[set[int]] = [set(), set(), set(), set()]
        self.auctions: list[set[int]] = [set(), set(), set(), set()]

    def add(self, auction: int, bidder: int, price: int) -> None:
        """Counts a bid."""
        level = 1 if price < RANK2 else 2 if price < RANK3 else 3
        for counted in (0, level):
            self.bids[counted] += 1
            self.bidders[counted].add(bidder)
            self.auctions[counted].add(auction)

    def columns(self) -> dict[str, int]:
        """The twelve numbers, by column."""
        groups = {
            "bids": self.bids,
            "bidders": list(map(len, self.bidders)),
            "auctions": list(map(len, self.auctions)),
        }
        return {
            f"{level}_{what}": count
            for what, counts in groups.items()
            for level, count in zip(("total", "rank1", "rank2", "rank3"), counts, strict=True)
        }
