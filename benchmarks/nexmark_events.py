"""Files of Nexmark events and of bids alone, made once and kept in the folder for temporary files."""

from __future__ import annotations

import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.nexmark.generator import BASE_TIME, Generator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SEED, EVENTS_PER_SECOND = 1, 10_000
LATEST = BASE_TIME + 1_000_000_000
"""A time far behind all events: Spark fires event-time timers only if something later comes."""


def nexmark_events(count: int) -> Path:
    """So many events in the order of time: 2 % persons, 6 % auctions, 92 % bids."""
    events = (event for _, event in Generator(SEED, EVENTS_PER_SECOND).events(count))
    return _kept(f"nexmark-{count}-events.jsonl", events)


def nexmark_bids(count: int) -> Path:
    """So many bids, 9,200 of a second each."""
    return _kept(f"nexmark-{count}-bids.jsonl", islice(_bids(count), count))


def _bids(count: int) -> Iterator[dict[str, Any]]:
    for _, event in Generator(SEED, EVENTS_PER_SECOND).events(count * 2):
        if event["bid"] is not None:
            yield event["bid"]


def _kept(name: str, records: Iterable[dict[str, Any]]) -> Path:
    folder = Path(tempfile.gettempdir()) / "opchain-benchmarks"
    path = folder / name
    if not path.exists():
        folder.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        encode = json.JSONEncoder(separators=(",", ":")).encode
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(encode(record) + "\n" for record in records)
        unfinished.rename(path)
    return path
