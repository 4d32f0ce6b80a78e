"""The input of a query, streams of persons, auctions and bids, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from examples.nexmark.json_lines import tuple_maker
from examples.nexmark.model import KINDS
from examples.nexmark.watermarks import WatermarkAfterEveryEvent
from opchain.common import Duration, WatermarkStrategy
from opchain.datastream import OutputTag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from examples.nexmark.model import Auction, Bid, Person, Row
    from examples.nexmark.source import EventSource
    from opchain.datastream import DataStream

LATE = OutputTag("late")
"""The side output of windows for late events."""

# A watermark is 4 seconds behind the greatest time. The generator itself subtracts one more millisecond.
OUT_OF_ORDER = Duration.of_millis(3_999)


@dataclass(frozen=True)
class Result:
    """The result of a query.

    Attributes:
        rows: The rows. If there is a key, a row replaces earlier rows with the same key.
        key: The columns of the key, or none to keep all rows. The same subtask must emit all rows with the
            same key.
        folders: The columns whose values choose the folder of a row.
        late: The events that windows dropped, by kind of event, as plain tuples.
    """

    rows: DataStream[Row]
    key: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    late: Mapping[str, DataStream[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Events:
    """The streams of persons, auctions and bids. A query lists the fields that it reads of each, once.

    Attributes:
        stream: The events of the source.
        source: The source.
        side_input: The file for the join of q13.
        keeps_late: Whether late events are written, which needs all their fields.
        after_every_event: Whether watermarks advance after every event, in a single subtask.
    """

    stream: DataStream[Any]
    source: EventSource
    side_input: str | None = None
    keeps_late: bool = False
    after_every_event: bool = False

    @property
    def timed(self) -> Events:
        """The events with timestamps, and with watermarks that follow the events of all kinds."""
        self.source.is_timed = True
        for kind in KINDS:
            self.source.fields.setdefault(kind, ("dateTime",))
        strategy: WatermarkStrategy[Any] = (
            WatermarkStrategy.for_generator(lambda _: WatermarkAfterEveryEvent())
            if self.after_every_event
            else WatermarkStrategy.for_bounded_out_of_orderness(OUT_OF_ORDER)
        ).with_timestamp_assigner(
            lambda event, _: (event.bid or event.auction or event.person).dateTime
        )
        timed = self.stream.assign_timestamps_and_watermarks(strategy)
        return replace(self, stream=self._as_parallel_as_the_source(timed))

    def persons(self, *fields: str) -> DataStream[Person]:
        """The persons."""
        self._read("person", fields)
        found = self.stream.filter(lambda event: event.person is not None)
        return self._members(found, lambda event: event.person).name("persons")

    def auctions(self, *fields: str) -> DataStream[Auction]:
        """The auctions."""
        self._read("auction", fields)
        found = self.stream.filter(lambda event: event.auction is not None)
        return self._members(found, lambda event: event.auction).name("auctions")

    def bids(self, *fields: str) -> DataStream[Bid]:
        """The bids."""
        self._read("bid", fields)
        found = self.stream.filter(lambda event: event.bid is not None)
        return self._members(found, lambda event: event.bid).name("bids")

    def tuples(self, records: DataStream[Any]) -> DataStream[tuple[Any, ...]]:
        """Records as tuples that begin with the requested fields, in order.

        An exchange sends plain tuples fastest.
        """
        return self._as_parallel_as_the_source(records.map(tuple_maker()).name("tuples"))

    def _members(self, found: DataStream[Any], member: Any) -> DataStream[Any]:
        return self._as_parallel_as_the_source(self._as_parallel_as_the_source(found).map(member))

    def _as_parallel_as_the_source(self, stream: DataStream[Any]) -> DataStream[Any]:
        # Without an exchange, no event overtakes another one or a watermark.
        return stream.set_parallelism(1) if self.after_every_event else stream

    def _read(self, kind: str, fields: tuple[str, ...]) -> None:
        known = KINDS[kind]._fields
        unknown = [name for name in fields if name not in known]
        if unknown:
            raise ValueError(f"a {kind} has no {', '.join(unknown)}; it has {', '.join(known)}")
        more = (*known,) if self.keeps_late else ("dateTime",) if self.source.is_timed else ()
        self.source.fields[kind] = tuple(dict.fromkeys((*fields, *more)))
