"""The options and the expected output of the five examples.

Lines of the same key or side output are in order. Lines of different ones may come from different subtasks, in any
order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("word_count", "sessions", "enrichment_join", "late_data", "dedup_with_ttl")

STREAMING = "execution.runtime-mode=STREAMING"
BATCH = "execution.runtime-mode=BATCH"
PARALLEL = "parallelism.default=3"

_SUBTASK = re.compile(r"^(?:(\w+):)?\d+> |^(\w+)> ")


class Run(NamedTuple):
    """An example with options, and the lines that it must print."""

    name: str
    settings: tuple[str, ...]
    arguments: tuple[str, ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.name, *self.settings, *self.arguments))

    @property
    def command(self) -> list[str]:
        """The arguments for `opchain run`."""
        path = str(EXAMPLES / f"{self.name}.py")
        settings = [word for setting in self.settings for word in ("-D", setting)]
        return [path, *settings, *self.arguments]


WORDS = {"to": 4, "the": 3, "be": 2, "or": 2, "of": 2} | dict.fromkeys(
    [
        "not",
        "that",
        "is",
        "question",
        "whether",
        "tis",
        "nobler",
        "in",
        "mind",
        "suffer",
        "slings",
        "and",
        "arrows",
        "outrageous",
        "fortune",
        "take",
        "arms",
        "against",
        "a",
        "sea",
        "troubles",
    ],
    1,
)
GROWING = tuple(f"('{word}', {n})" for word, last in WORDS.items() for n in range(1, last + 1))
FINAL = tuple(f"('{word}', {last})" for word, last in WORDS.items())
VISITS = (
    "('bob', 'minutes 5 to 5', '1 pages')",
    "('ann', 'minutes 0 to 65', '4 pages')",
    "('bob', 'minutes 90 to 100', '2 pages')",
    "('ann', 'minutes 200 to 200', '1 pages')",
)
SHORT_VISITS = tuple(
    f"('{user}', 'minutes {first} to {last}', '{pages} pages')"
    for user, first, last, pages in (
        ("ann", 0, 0, 1),
        ("ann", 20, 20, 1),
        ("ann", 40, 40, 1),
        ("ann", 65, 65, 1),
        ("ann", 200, 200, 1),
        ("bob", 5, 5, 1),
        ("bob", 90, 100, 2),
    )
)
NAMED = (
    "('ann', 'Ann Lee', 'shoes')",
    "('ann', 'Ann Lee', 'scarf')",
    "('bob', 'Bob Ray', 'hat')",
    "('sam', '?', 'belt')",
)
TENS = (
    "('0 s to 10 s', 3)",
    "('0 s to 10 s', 4)",
    "('10 s to 20 s', 2)",
    "late> 9",
    "('20 s to 30 s', 1)",
    "('30 s to 40 s', 1)",
)
TENS_AT_ONCE = (
    "('0 s to 10 s', 3)",
    "late> 5",
    "('10 s to 20 s', 2)",
    "late> 9",
    "('20 s to 30 s', 1)",
    "('30 s to 40 s', 1)",
)
ALL_TENS = ("('0 s to 10 s', 5)", "('10 s to 20 s', 2)", *TENS[-2:])
PAYMENTS = ("('p1', 100)", "('p2', 250)", "('p3', 75)")

RUNS = [
    Run("word_count", (), (), GROWING),
    Run("word_count", (BATCH,), (), FINAL),
    Run("word_count", (BATCH, PARALLEL), (), FINAL),
    Run("sessions", (), (), VISITS),
    Run("sessions", (BATCH,), (), VISITS),
    Run("sessions", (PARALLEL,), ("--gap", "15"), SHORT_VISITS),
    Run("enrichment_join", (), (), NAMED),
    Run("enrichment_join", (BATCH,), (), NAMED),
    Run("enrichment_join", (PARALLEL,), ("--patience", "5"), NAMED),
    Run("late_data", (), (), TENS),
    Run("late_data", (BATCH,), (), ALL_TENS),
    Run("late_data", (), ("--lateness", "0"), TENS_AT_ONCE),
    Run("dedup_with_ttl", (), (), PAYMENTS),
    Run("dedup_with_ttl", (BATCH, PARALLEL), ("--minutes", "5"), PAYMENTS),
]


def by_key(lines: tuple[str, ...] | list[str]) -> dict[str, list[str]]:
    """Lines by the first field of their tuple, or the prefix of their sink, without the subtask."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        prefix = _SUBTASK.match(line)
        sink = (prefix[1] or prefix[2] or "") if prefix else ""
        text = line[prefix.end() :] if prefix else line
        found[sink or text.partition(",")[0]].append(text)
    return dict(found)
