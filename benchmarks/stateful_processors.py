"""Stateful processors of W3 and some Nexmark queries for transformWithState, and the queries around them.

Each access to state is a message to the JVM. The processors read and write state once per key, window and micro-batch,
not once per record.
"""
# ruff: noqa: N802, N803 - Spark names the methods and their arguments

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SIZE_MS, STEP_MS = 10_000, 2_000
BID_ROW = "auction bigint, bidder bigint, price bigint, dateTime bigint, extra string"


class BidWindows(StatefulProcessor):
    """W3, keyed by auction: count and highest price of each window."""

    def init(self, handle: Any) -> None:
        """Declares the state."""
        self.handle = handle
        self.windows = handle.getMapState("windows", "start bigint", "bids bigint, price bigint")

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Row]:
        """Folds the bids of a micro-batch."""
        del key, timerValues
        found: dict[int, tuple[int, int]] = {}
        for row in rows:
            start = row.dateTime - row.dateTime % SIZE_MS
            count, highest = found.get(start, (0, 0))
            found[start] = count + 1, max(highest, row.price)
        for start, (count, highest) in found.items():
            before = self.windows.getValue((start,))
            if before is None:
                self.handle.registerTimer(start + SIZE_MS)
                before = 0, 0
            self.windows.updateValue((start,), (before[0] + count, max(before[1], highest)))
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Emits the row of a window."""
        del timerValues
        start = expiredTimerInfo.getExpiryTimeInMs() - SIZE_MS
        count, highest = self.windows.getValue((start,))
        self.windows.removeKey((start,))
        yield Row(auction=key[0], starttime=start, bids=count, price=highest)


class BidCounts(StatefulProcessor):
    """q5, keyed by auction: the number of bids of each sliding window, from the numbers of its steps."""

    def init(self, handle: Any) -> None:
        """Declares the state."""
        self.handle = handle
        self.steps = handle.getMapState("steps", "start bigint", "bids bigint")

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Row]:
        """Counts the bids of a micro-batch."""
        del key, timerValues
        counts = Counter(row.dateTime - row.dateTime % STEP_MS for row in rows)
        for start, count in counts.items():
            before = self.steps.getValue((start,))
            if before is None:
                for end in range(start + STEP_MS, start + SIZE_MS + 1, STEP_MS):
                    self.handle.registerTimer(end)
                before = (0,)
            self.steps.updateValue((start,), (before[0] + count,))
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Emits the count of a window."""
        del timerValues
        end = expiredTimerInfo.getExpiryTimeInMs()
        steps = {start[0]: count[0] for start, count in self.steps.iterator()}
        inside = [start for start in steps if end - SIZE_MS <= start < end]
        if end - SIZE_MS in steps:
            self.steps.removeKey((end - SIZE_MS,))
        num = sum(steps[start] for start in inside)
        yield Row(auction=key[0], num=num, endtime=end, time=_timestamp(end))


class Hottest(StatefulProcessor):
    """q5, keyed by window: the auctions with the greatest count."""

    def init(self, handle: Any) -> None:
        """Declares the state."""
        self.handle = handle
        self.best = handle.getListState("best", "auction bigint, num bigint")

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Row]:
        """Keeps the auctions with the greatest count."""
        del timerValues
        counts = [*self.best.get(), *((row.auction, row.num) for row in rows)]
        greatest = max(num for _, num in counts)
        self.best.put([(auction, num) for auction, num in counts if num == greatest])
        self.handle.registerTimer(key[0])
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Emits the rows of a window."""
        del timerValues, expiredTimerInfo
        end = key[0]
        for auction, num in self.best.get():
            yield Row(auction=auction, num=num, starttime=end - SIZE_MS, endtime=end)
        self.best.clear()


class Highest(StatefulProcessor):
    """q7, keyed by window: the bids with the highest price."""

    def init(self, handle: Any) -> None:
        """Declares the state."""
        self.handle = handle
        self.best = handle.getListState("best", BID_ROW)

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Row]:
        """Keeps the highest bids."""
        del timerValues
        best = list(self.best.get())
        highest = best[0][2] if best else -1
        for row in rows:
            price = row.price
            if price > highest:
                highest, best = price, []
            if price == highest:
                best.append((row.auction, row.bidder, price, row.dateTime, row.extra))
        self.best.put(best)
        self.handle.registerTimer(key[0] + SIZE_MS)
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Emits the rows of a window."""
        del key, timerValues, expiredTimerInfo
        for auction, bidder, price, time, extra in self.best.get():
            yield Row(auction=auction, bidder=bidder, price=price, dateTime=time, extra=extra)
        self.best.clear()


class NewSellers(StatefulProcessor):
    """q8, keyed by person: the windows in which the person signed up, and sold."""

    def init(self, handle: Any) -> None:
        """Declares the state."""
        self.handle = handle
        self.windows = handle.getMapState("windows", "start bigint", "name string, sells boolean")

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Row]:
        """Adds the events of a micro-batch."""
        del key, timerValues
        found: dict[int, tuple[str | None, bool]] = {}
        for row in rows:
            start = row.dateTime - row.dateTime % SIZE_MS
            name, sells = found.get(start, (None, False))
            found[start] = name or row.name, sells or row.name is None
        for start, (name, sells) in found.items():
            before = self.windows.getValue((start,))
            if before is None:
                self.handle.registerTimer(start + SIZE_MS)
                before = None, False
            self.windows.updateValue((start,), (name or before[0], sells or before[1]))
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Emits the row of a window in which the person signed up and sold."""
        del timerValues
        start = expiredTimerInfo.getExpiryTimeInMs() - SIZE_MS
        name, sells = self.windows.getValue((start,))
        self.windows.removeKey((start,))
        if name is not None and sells:
            yield Row(id=key[0], name=name, stime=start)


def w3(bids: Any) -> Any:
    """W3 over bids."""
    timed = _timed(bids.select("auction", "price", "dateTime"), "dateTime")
    return _stateful(
        timed.groupBy("auction"),
        BidWindows(),
        "auction bigint, starttime bigint, bids bigint, price bigint",
    )


def q5(events: Any) -> Any:
    """q5 over events: two stateful operators, one after the other."""
    bids = _bids(events).select("auction", "dateTime", "time")
    counts = _stateful(
        bids.groupBy("auction"),
        BidCounts(),
        "auction bigint, num bigint, endtime bigint, time timestamp",
        eventTimeColumnName="time",
    )
    return _stateful(
        counts.groupBy("endtime"),
        Hottest(),
        "auction bigint, num bigint, starttime bigint, endtime bigint",
    )


def q7(events: Any) -> Any:
    """q7 over events, keyed by window. There are few windows, so there are few messages to the JVM."""
    bids = _bids(events).selectExpr("*", f"dateTime - dateTime % {SIZE_MS} AS start")
    return _stateful(bids.groupBy("start"), Highest(), BID_ROW)


def q8(events: Any) -> Any:
    """q8 over events: persons and auctions in one stream, keyed by the person."""
    timed = _timed(events, "person.dateTime", "auction.dateTime", "bid.dateTime")
    signing = timed.where("auction IS NOT NULL OR person IS NOT NULL").selectExpr(
        "coalesce(person.id, auction.seller) AS id",
        "person.name AS name",
        "coalesce(person.dateTime, auction.dateTime) AS dateTime",
        "time",
    )
    return _stateful(signing.groupBy("id"), NewSellers(), "id bigint, name string, stime bigint")


def _bids(events: Any) -> Any:
    timed = _timed(events, "person.dateTime", "auction.dateTime", "bid.dateTime")
    return timed.where("bid IS NOT NULL").select("bid.*", "time")


def _timed(records: Any, *fields: str) -> Any:
    """Adds a watermark, 4 seconds behind the greatest time. The time of a record is the first field that is not null."""
    time = f"timestamp_millis(coalesce({', '.join(fields)}))"
    return records.selectExpr("*", f"{time} AS time").withWatermark("time", "4 seconds")


def _stateful(grouped: Any, processor: StatefulProcessor, row: str, **options: Any) -> Any:
    return grouped.transformWithState(
        processor, outputStructType=row, outputMode="Append", timeMode="EventTime", **options
    )


def _timestamp(milliseconds: int) -> Any:
    from datetime import datetime, timezone  # noqa: PLC0415

    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
