"""Runs Nexmark queries on two kinds of small data, and reads their results."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from examples.nexmark.__main__ import main
from examples.nexmark.generator import Generator, shuffled

if TYPE_CHECKING:
    from pathlib import Path

ROWS_OF_A_TABLE = {
    "q4": ("id",),
    "q6": ("seller", "id"),
    "q9": ("id",),
    "q15": ("day",),
    "q16": ("channel", "day"),
    "q17": ("auction", "day"),
    "q18": ("auction", "bidder"),
    "q19": ("auction", "rank_number"),
}
"""The columns of a row that no other row may have, of queries whose last state counts."""


def generated(count: int = 1_500, rate: int = 60) -> list[dict[str, Any]]:
    """What the generator makes, up to 3 seconds out of order."""
    events = Generator(seed=7, rate=rate).events(count)
    return [event for _, event in shuffled(events, 3_000, seed=7)]


def crowded(count: int = 1_200, disorder_ms: int = 3_900, seed: int = 3) -> list[dict[str, Any]]:
    """Few of everything, so that there are ties, early bids, and sessions at the very gap.

    What the definitions leave open does not occur: two bids of the same price and time for an auction, or winning
    bids of a seller at the same time (an instant belongs to one auction).
    """
    draw = random.Random(seed)
    events: list[tuple[int, dict[str, Any]]] = []
    taken = set()
    base = 1_700_006_390_000  # ten seconds before midnight
    for number in range(count):
        time = base + draw.randrange(0, 60_000, 500)
        kind = draw.choices((0, 1, 2), (2, 2, 12))[0]
        auction = time // 500 % 9
        if kind == 0:
            member: dict[str, Any] = {
                "id": 1_000 + number,
                "name": f"Name {number}",
                "emailAddress": "somebody@somewhere",
                "creditCard": "1234",
                "city": "Köln",
                "state": draw.choice(("OR", "WA", "CA")),
                "dateTime": time,
                "extra": 'with "quotes" and \\',
            }
        elif kind == 1:
            member = {
                "id": 10_000 + number,
                "itemName": "an item",
                "description": "",
                "initialBid": 1,
                "reserve": 2,
                "dateTime": time,
                "expires": time + draw.randrange(0, 30_000, 500),
                "seller": 1_000 + number + draw.randrange(-9, 9),
                "category": draw.choice((10, 11)),
                "extra": "x",
            }
        else:
            price = draw.choice(
                (9_999, 10_000, 999_999, 1_000_000, 55_066_079, draw.randrange(10**8))
            )
            if (time, price) in taken:
                continue
            taken.add((time, price))
            member = {
                "auction": 2_460 + auction * 41,
                "bidder": draw.choice((draw.randrange(4), 100 + draw.randrange(60))),
                "price": price,
                "channel": draw.choice(("apple", "Google", "FACEBOOK", "baidu", "other")),
                "url": draw.choice(
                    ("https://a/b/c/d", "channel_id=7&a/b/c/d/e/", "http:////x?a=1&channel_id=&b=2")
                )
                + draw.choice(("/", "/e?xchannel_id=1", "/&channel_id=9/&channel_id=3")),
                "dateTime": time,
                "extra": draw.choice(("abc", "ccc", "")),
            }
        event = {"event_type": kind, "person": None, "auction": None, "bid": None}
        event[("person", "auction", "bid")[kind]] = member
        events.append((time, event))
    for number in range(9):
        auction = {
            "id": 2_460 + number * 41,
            "itemName": f"item {number}",
            "description": "wanted",
            "initialBid": 100,
            "reserve": 200,
            "dateTime": base + number * 3_000,
            "expires": base + 20_000 + number * 3_500,
            "seller": 1 + number % 2,
            "category": 10 + number % 3,
            "extra": "",
        }
        event = {"event_type": 1, "person": None, "auction": auction, "bid": None}
        events.append((auction["dateTime"], event))
    events.sort(key=lambda pair: pair[0])
    return [event for _, event in shuffled(events, disorder_ms, seed)]


def written(events: list[dict[str, Any]], path: Path, files: int = 1, **style: Any) -> Path:
    """Writes events to a file, or in turn to several files of a folder."""
    lines = [json.dumps(event, **style) for event in events]
    if files == 1:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
    path.mkdir()
    (path / "_SUCCESS").write_text("nothing to read here")
    for number in range(files):
        text = "\n".join(lines[number::files])
        (path / f"events-{number}.jsonl").write_text(text, encoding="utf-8")
    return path


def run(query: str, input_path: Path, output: Path, *options: str) -> list[dict[str, Any]]:
    """The rows that a query writes, prices as Decimal."""
    paths = ("--input", str(input_path), "--output", str(output))
    assert main([query, *paths, *options]) == 0
    return rows_in(output)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """The rows of all files, hidden ones excepted."""
    rows: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            assert not file.name.startswith((".", "_"))
            rows += [read_row(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return rows


def read_row(line: str) -> dict[str, Any]:
    """A line as a row; numbers with a point are exact, as texts with one are that are prices."""
    row: dict[str, Any] = json.loads(line, parse_float=Decimal)
    if isinstance(row.get("price"), str):
        row["price"] = Decimal(row["price"])
    return row


def as_bag(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Rows without order, to compare."""
    return Counter(tuple(sorted(row.items())) for row in rows)


def assert_same_rows(
    query: str, rows: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """Asserts that a query wrote what is expected, in whatever order."""
    found, wanted = as_bag(rows), as_bag(expected)
    assert found == wanted, f"{query}: too many {found - wanted}, missing {wanted - found}"
    for row in rows:
        assert all(type(value) in (int, str, Decimal) for value in row.values())
    key = ROWS_OF_A_TABLE.get(query)
    if key is not None:
        assert len({tuple(row[column] for column in key) for row in rows}) == len(rows)
