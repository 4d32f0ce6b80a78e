"""Writes files of Nexmark events, and files of bids only, to the folder for temporary files. Existing files are reused."""

from __future__ import annotations

import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM
from examples.nexmark.generator import BASE_TIME, Generator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SEED, EVENTS_PER_SECOND = 1, 10_000
LATEST = BASE_TIME + 1_000_000_000
"""A time long after all events. Spark fires event-time timers only after a later record."""


def nexmark_events(count: int) -> Path:
    """A file of `count` events in the order of time: 2 % persons, 6 % auctions, 92 % bids."""
    name = f"nexmark-{count}-events-0.jsonl"
    return _kept(name, (event for _, event in Generator(SEED, EVENTS_PER_SECOND).events(count)))


def nexmark_bids(count: int) -> tuple[Path, ...]:
    """Files of `count` bids, 9,200 per second of event time, dealt out to one file per subtask."""
    return tuple(
        _kept(f"nexmark-{count}-bids-{part}.jsonl", _bids(count, part))
        for part in range(PARALLELISM)
    )


def _bids(count: int, part: int) -> Iterator[dict[str, Any]]:
    events = Generator(SEED, EVENTS_PER_SECOND).events(count * 2)
    bids = (event["bid"] for _, event in events if event["bid"] is not None)
    return islice(bids, part, count, PARALLELISM)


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
