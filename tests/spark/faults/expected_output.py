"""The input of the disturbed job, and which of its output is lost, repeated or wrong."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import TYPE_CHECKING

from disturbed_job import COUNTS, END, GATHERED, OUTPUTS, SUMS, WINDOW_MS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEYS = 50
FILE_MS = 1_000
FAR_AWAY_MS = 10**12
_SHOWN = 3

Row = tuple[str, int, int]
"""Key, event time, value."""


def rows_of(number: int, size: int, seed: int) -> list[Row]:
    """The rows of a file; values differ between files."""
    draw = random.Random(f"{seed} {number}")
    first = number * FILE_MS
    return [
        (f"k{draw.randrange(KEYS)}", first + draw.randrange(FILE_MS), number * size + row)
        for row in range(size)
    ]


def last_rows() -> list[Row]:
    """The rows of the last file: one of each key, with a much later timestamp."""
    return [(f"k{key}", FAR_AWAY_MS, END) for key in range(KEYS)]


def write_rows(folder: Path, number: int, rows: Iterable[Row], modified_s: float) -> None:
    """Moves a file into the folder in one step; Spark reads the oldest file first."""
    hidden = folder / f".{number:06}.json"
    hidden.write_text(
        "".join(
            json.dumps({"key": key, "time": time, "value": value}) + "\n"
            for key, time, value in rows
        ),
        "utf-8",
    )
    os.utime(hidden, (modified_s, modified_s))
    hidden.rename(folder / hidden.name[1:])


def written(target: Path) -> dict[str, list[str]]:
    """The lines of each output, in any order, without the hidden files of killed processes."""
    return {
        name: [
            line
            for path in (target / name).rglob("*")
            if path.is_file() and not path.name.startswith(".")
            for line in path.read_text("utf-8").splitlines()
        ]
        for name in OUTPUTS
    }


def mistakes(rows: Iterable[Row], output: dict[str, list[str]]) -> list[str]:
    """What is wrong with the output for the rows of all files; empty if all is right."""
    values: dict[str, list[int]] = {}
    windows: dict[tuple[str, int], list[int]] = {}
    for key, time, value in rows:
        values.setdefault(key, []).append(value)
        if value != END:
            windows.setdefault((key, time // WINDOW_MS), []).append(value)
    sums = Counter(f"{key} {sum(found)} {len(found)}" for (key, _), found in windows.items())
    of_all = Counter((key, value) for key, found in values.items() for value in found)
    counts = [line.split() for line in output[COUNTS]]
    gathered = [line.split() for line in output[GATHERED]]
    return [
        *_differences(SUMS, sums, Counter(output[SUMS])),
        *_differences(COUNTS, of_all, Counter((key, int(value)) for key, _, value in counts)),
        *_differences(
            "numbers of counts",
            Counter((key, n) for key, found in values.items() for n in range(1, len(found) + 1)),
            Counter((key, int(number)) for key, number, _ in counts),
        ),
        *_differences(
            GATHERED,
            of_all,
            Counter((key, int(value)) for key, *found in gathered for value in found),
        ),
    ]


def _differences(what: str, expected: Counter[object], found: Counter[object]) -> list[str]:
    return [
        f"{what}: {word} {sum(some.values())}, as {', '.join(map(repr, list(some)[:_SHOWN]))}"
        for word, some in (("lost", expected - found), ("too many", found - expected))
        if some
    ]
