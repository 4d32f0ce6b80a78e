"""Numbers of bids, bidders and auctions by level of price, which q15, q16 and q17 report."""

from __future__ import annotations

RANK2, RANK3 = 10_000, 1_000_000
"""Where the second and the third level begin."""


class BidStatistics:
    """Bids, and the distinct bidders and auctions among them: in all and for each level."""

    __slots__ = ("auctions", "bidders", "bids")

    def __init__(self) -> None:
        self.bids = [0, 0, 0, 0]
        self.bidders: list[set[int]] = [set(), set(), set(), set()]
        self.auctions: list[set[int]] = [set(), set(), set(), set()]

    def add(self, auction: int, bidder: int, price: int) -> None:
        """Takes a bid in."""
        level = 1 if price < RANK2 else 2 if price < RANK3 else 3
        for counted in (0, level):
            self.bids[counted] += 1
            self.bidders[counted].add(bidder)
            self.auctions[counted].add(auction)

    def columns(self) -> dict[str, int]:
        """The twelve numbers."""
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
