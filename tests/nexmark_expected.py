"""What each Nexmark query returns, computed record by record from its definition: slow and plain.

Nothing of examples.nexmark is used here. Events are the objects of the input, in the order of the input; rows
have prices as Decimal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Event = dict[str, Any]
Row = dict[str, Any]

NO_WATERMARK = -(2**63)
DELAY = 4_000
KINDS = ("person", "auction", "bid")


def expected(query: str, events: list[Event], side_input: dict[int, str]) -> list[Row]:
    """The rows of a query if nothing is late."""
    if query == "q13":
        return q13(events, side_input)
    if query in WITH_LATE:
        return WITH_LATE[query](events, [NO_WATERMARK] * len(events))[0]
    return QUERIES[query](events)


def expected_with_late(query: str, events: list[Event]) -> tuple[list[Row], list[Event]]:
    """The rows, and the events that are dropped, if the watermark advances after every event."""
    return WITH_LATE[query](events, watermarks(events))


def watermarks(events: list[Event]) -> list[int]:
    """The watermark that each event sees: that of the events before it."""
    greatest, seen = None, []
    for event in events:
        seen.append(NO_WATERMARK if greatest is None else greatest - DELAY)
        greatest = max(time_of(event), time_of(event) if greatest is None else greatest)
    return seen


def member(event: Event) -> Any:
    return event[KINDS[event["event_type"]]]


def time_of(event: Event) -> int:
    time: int = member(event)["dateTime"]
    return time


def of_kind(events: Iterable[Event], kind: str) -> list[Any]:
    return [event[kind] for event in events if event[kind] is not None]


def picked(record: Row, *columns: str) -> Row:
    return {column: record[column] for column in columns}


def utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds // 1000, timezone.utc)


def day_of(bid: Row) -> str:
    return utc(bid["dateTime"]).strftime("%Y-%m-%d")


def minute_of(bid: Row) -> str:
    return utc(bid["dateTime"]).strftime("%H:%M")


def grouped(records: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return groups


SHORT = ("auction", "bidder", "price", "dateTime", "extra")


def q0(events: list[Event]) -> list[Row]:
    return [picked(bid, *SHORT) for bid in of_kind(events, "bid")]


def q1(events: list[Event]) -> list[Row]:
    return [{**row, "price": row["price"] * Decimal("0.908")} for row in q0(events)]


def q2(events: list[Event]) -> list[Row]:
    return [
        picked(bid, "auction", "price")
        for bid in of_kind(events, "bid")
        if bid["auction"] % 123 == 0
    ]


def q3(events: list[Event]) -> list[Row]:
    return [
        {**picked(person, "name", "city", "state"), "id": auction["id"]}
        for auction in of_kind(events, "auction")
        if auction["category"] == 10
        for person in of_kind(events, "person")
        if person["id"] == auction["seller"] and person["state"] in {"OR", "ID", "CA"}
    ]


def winners(events: list[Event]) -> list[tuple[Row, Row]]:
    """Each auction with at least one valid bid, and the best of them."""
    bids = grouped(of_kind(events, "bid"), lambda bid: bid["auction"])
    found = []
    for auction in of_kind(events, "auction"):
        valid = [
            bid
            for bid in bids[auction["id"]]
            if auction["dateTime"] <= bid["dateTime"] <= auction["expires"]
        ]
        if valid:
            found.append((auction, min(valid, key=lambda bid: (-bid["price"], bid["dateTime"]))))
    return found


def q4(events: list[Event]) -> list[Row]:
    by_category = grouped(winners(events), lambda pair: pair[0]["category"])
    return [
        {"id": category, "final": sum(bid["price"] for _, bid in pairs) // len(pairs)}
        for category, pairs in by_category.items()
    ]


def q6(events: list[Event]) -> list[Row]:
    rows = []
    for seller, pairs in grouped(winners(events), lambda pair: pair[0]["seller"]).items():
        pairs.sort(key=lambda pair: (pair[1]["dateTime"], pair[0]["id"]))
        for number, (auction, _) in enumerate(pairs):
            prices = [bid["price"] for _, bid in pairs[max(0, number - 10) : number + 1]]
            average = sum(prices) // len(prices)
            rows.append({"seller": seller, "id": auction["id"], "avg_price": average})
    return rows


def q9(events: list[Event]) -> list[Row]:
    return [
        {
            **auction,
            **picked(bid, "auction", "bidder", "price"),
            "bid_dateTime": bid["dateTime"],
            "bid_extra": bid["extra"],
        }
        for auction, bid in winners(events)
    ]


def q10(events: list[Event]) -> list[Row]:
    return [{**row, "dt": day_of(row), "hm": minute_of(row)} for row in q0(events)]


def q13(events: list[Event], side_input: dict[int, str]) -> list[Row]:
    return [
        {
            **picked(bid, "auction", "bidder", "price", "dateTime"),
            "value": side_input[bid["auction"] % 10_000],
        }
        for bid in of_kind(events, "bid")
        if bid["auction"] % 10_000 in side_input
    ]


def q14(events: list[Event]) -> list[Row]:
    rows = []
    for row in q1(events):
        if not 1_000_000 < row["price"] < 50_000_000:
            continue
        hour = utc(row["dateTime"]).hour
        if 8 <= hour <= 18:
            name = "dayTime"
        elif hour <= 6 or hour >= 20:
            name = "nightTime"
        else:
            name = "otherTime"
        rows.append({**row, "bidTimeType": name, "c_counts": row["extra"].count("c")})
    return rows


def level(bid: Row) -> str:
    if bid["price"] < 10_000:
        return "rank1"
    return "rank2" if bid["price"] < 1_000_000 else "rank3"


def twelve_counts(bids: list[Row]) -> Row:
    counts = {}
    for name in ("total", "rank1", "rank2", "rank3"):
        at_level = [bid for bid in bids if name in {"total", level(bid)}]
        counts[f"{name}_bids"] = len(at_level)
        counts[f"{name}_bidders"] = len({bid["bidder"] for bid in at_level})
        counts[f"{name}_auctions"] = len({bid["auction"] for bid in at_level})
    return counts


def q15(events: list[Event]) -> list[Row]:
    days = grouped(of_kind(events, "bid"), day_of)
    return [{"day": day, **twelve_counts(bids)} for day, bids in days.items()]


def q16(events: list[Event]) -> list[Row]:
    groups = grouped(of_kind(events, "bid"), lambda bid: (bid["channel"], day_of(bid)))
    return [
        {
            "channel": channel,
            "day": day,
            "minute": max(map(minute_of, bids)),
            **twelve_counts(bids),
        }
        for (channel, day), bids in groups.items()
    ]


def q17(events: list[Event]) -> list[Row]:
    rows = []
    groups = grouped(of_kind(events, "bid"), lambda bid: (bid["auction"], day_of(bid)))
    for (auction, day), bids in groups.items():
        prices = [bid["price"] for bid in bids]
        levels = [level(bid) for bid in bids]
        rows.append(
            {
                "auction": auction,
                "day": day,
                "total_bids": len(bids),
                **{f"rank{n}_bids": levels.count(f"rank{n}") for n in (1, 2, 3)},
                "min_price": min(prices),
                "max_price": max(prices),
                "avg_price": sum(prices) // len(prices),
                "sum_price": sum(prices),
            }
        )
    return rows


LONG = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")


def q18(events: list[Event]) -> list[Row]:
    rows = []
    groups = grouped(of_kind(events, "bid"), lambda bid: (bid["auction"], bid["bidder"]))
    for bids in groups.values():
        latest = max(bid["dateTime"] for bid in bids)
        rows.append(picked([bid for bid in bids if bid["dateTime"] == latest][-1], *LONG))
    return rows


def q19(events: list[Event]) -> list[Row]:
    rows = []
    for bids in grouped(of_kind(events, "bid"), lambda bid: bid["auction"]).values():
        bids.sort(key=lambda bid: (-bid["price"], bid["dateTime"]))
        for rank, bid in enumerate(bids[:10], start=1):
            rows.append({**picked(bid, *LONG), "rank_number": rank})
    return rows


def q20(events: list[Event]) -> list[Row]:
    return [
        {
            **picked(bid, "auction", "bidder", "price", "channel", "url"),
            "bid_dateTime": bid["dateTime"],
            "bid_extra": bid["extra"],
            **picked(auction, "itemName", "description", "initialBid", "reserve"),
            "auction_dateTime": auction["dateTime"],
            **picked(auction, "expires", "seller", "category"),
            "auction_extra": auction["extra"],
        }
        for auction in of_kind(events, "auction")
        if auction["category"] == 10
        for bid in of_kind(events, "bid")
        if bid["auction"] == auction["id"]
    ]


def q21(events: list[Event]) -> list[Row]:
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    rows = []
    for bid in of_kind(events, "bid"):
        channel_id = known.get(bid["channel"].lower())
        for piece in bid["url"].split("&"):
            if channel_id is None and piece.startswith("channel_id="):
                channel_id = piece.removeprefix("channel_id=")
        if channel_id is not None:
            row = picked(bid, "auction", "bidder", "price", "channel")
            rows.append({**row, "channel_id": channel_id})
    return rows


def q22(events: list[Event]) -> list[Row]:
    return [
        {
            **picked(bid, "auction", "bidder", "price", "channel"),
            **{f"dir{n}": re.split("/", bid["url"])[2 + n] for n in (1, 2, 3)},
        }
        for bid in of_kind(events, "bid")
    ]


# Windows: each event sees a watermark, and a window that is over does not see the event.


def windowed(
    events: list[Event], seen: list[int], size: int, step: int, kinds: tuple[str, ...]
) -> tuple[dict[int, list[Event]], list[Event]]:
    """Start of window -> its events, and the events that no window sees."""
    windows: dict[int, list[Event]] = defaultdict(list)
    dropped = []
    for event, watermark in zip(events, seen, strict=True):
        if KINDS[event["event_type"]] not in kinds:
            continue
        time = time_of(event)
        first = (time - size) // step * step + step
        open_ones = [
            start for start in range(first, time + 1, step) if start + size - 1 > watermark
        ]
        for start in open_ones:
            windows[start].append(event)
        if not open_ones:
            dropped.append(event)
    return windows, dropped


def q5(events: list[Event], seen: list[int]) -> tuple[list[Row], list[Event]]:
    windows, dropped = windowed(events, seen, 10_000, 2_000, ("bid",))
    rows = []
    for start, inside in windows.items():
        auctions = [event["bid"]["auction"] for event in inside]
        greatest = max(map(auctions.count, auctions))
        rows += [
            {"auction": auction, "num": greatest, "starttime": start, "endtime": start + 10_000}
            for auction in set(auctions)
            if auctions.count(auction) == greatest
        ]
    return rows, dropped


def q7(events: list[Event], seen: list[int]) -> tuple[list[Row], list[Event]]:
    windows, dropped = windowed(events, seen, 10_000, 10_000, ("bid",))
    rows = []
    for inside in windows.values():
        bids = of_kind(inside, "bid")
        highest = max(bid["price"] for bid in bids)
        rows += [picked(bid, *SHORT) for bid in bids if bid["price"] == highest]
    return rows, dropped


def q8(events: list[Event], seen: list[int]) -> tuple[list[Row], list[Event]]:
    windows, dropped = windowed(events, seen, 10_000, 10_000, ("person", "auction"))
    rows = []
    for start, inside in windows.items():
        sellers = {auction["seller"] for auction in of_kind(inside, "auction")}
        rows += [
            {**picked(person, "id", "name"), "stime": start}
            for person in of_kind(inside, "person")
            if person["id"] in sellers
        ]
    return rows, dropped


def q11(events: list[Event], seen: list[int]) -> tuple[list[Row], list[Event]]:
    open_ones: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    rows, dropped = [], []
    for event, watermark in zip(events, seen, strict=True):
        bid = event["bid"]
        if bid is None:
            continue
        bidder, start, end, count = bid["bidder"], bid["dateTime"], bid["dateTime"] + 10_000, 1
        waiting = []
        for other_start, other_end, other_count in open_ones[bidder]:
            if other_end - 1 <= watermark:
                rows.append(session(bidder, other_start, other_end, other_count))
            elif other_start <= end and start <= other_end:
                start, end = min(start, other_start), max(end, other_end)
                count += other_count
            else:
                waiting.append((other_start, other_end, other_count))
        if end - 1 <= watermark:
            dropped.append(event)
        else:
            waiting.append((start, end, count))
        open_ones[bidder] = waiting
    rows += [session(bidder, *one) for bidder, ones in open_ones.items() for one in ones]
    return rows, dropped


def session(bidder: int, start: int, end: int, count: int) -> Row:
    return {"bidder": bidder, "bid_count": count, "starttime": start, "endtime": end}


QUERIES: dict[str, Callable[[list[Event]], list[Row]]] = {
    query.__name__: query
    for query in (q0, q1, q2, q3, q4, q6, q9, q10, q14, q15, q16, q17, q18, q19, q20, q21, q22)
}
WITH_LATE: dict[str, Callable[[list[Event], list[int]], tuple[list[Row], list[Event]]]] = {
    query.__name__: query for query in (q5, q7, q8, q11)
}
