"""q13 - side input: each bid with the value of its key in a file. The key is the auction's id modulo 10,000.

The file is CSV without a header: key, value. Every subtask reads it before its first bid; bids without a value
are dropped.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from examples.nexmark.streams import Result
from opchain.datastream.functions import FlatMapFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.nexmark.model import Bid, Row
    from examples.nexmark.streams import Events
    from opchain.datastream.functions import RuntimeContext

KEYS = 10_000


def build(events: Events) -> Result:
    """A flat map that looks up values in the file."""
    if events.side_input is None:
        raise ValueError("q13 joins bids with a file: use --side-input FILE")
    bids = events.bids("auction", "bidder", "price", "dateTime")
    return Result(bids.flat_map(SideInput(events.side_input)).name("side input"))


class SideInput(FlatMapFunction["Bid", "Row"]):
    """Looks each bid up in a table that is read when the task starts."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._values: dict[int, str] = {}

    def open(self, runtime_context: RuntimeContext) -> None:
        """Reads the file."""
        with Path(self._path).open(encoding="utf-8", newline="") as file:
            self._values = dict(map(self._entry, filter(None, csv.reader(file))))

    def flat_map(self, value: Bid) -> Iterator[Row]:
        """One row or none."""
        found = self._values.get(value.auction % KEYS)
        if found is not None:
            yield {
                "auction": value.auction,
                "bidder": value.bidder,
                "price": value.price,
                "dateTime": value.dateTime,
                "value": found,
            }

    def _entry(self, record: list[str]) -> tuple[int, str]:
        try:
            key, value = record
            return int(key), value
        except ValueError:
            raise ValueError(
                f"{self._path}: {record} is not a pair of a key, an integer, and a value"
            ) from None
