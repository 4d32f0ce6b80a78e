"""Text with word frequencies like those of a natural language: the n-th word is 1/n times as frequent as the first."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.environment import PARALLELISM

if TYPE_CHECKING:
    from collections.abc import Iterator

VOCABULARY = 100_000
WORDS_PER_LINE = 10
_WORDS_AT_ONCE = 100_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def zipf_texts(megabytes: int) -> tuple[Path, ...]:
    """Writes a file for each subtask, `megabytes` (10**6 bytes) in total, to the folder for temporary files, if not there."""
    return tuple(_kept(megabytes * 1_000_000 // PARALLELISM, part) for part in range(PARALLELISM))


def _kept(size: int, part: int) -> Path:
    folder = Path(tempfile.gettempdir()) / "opchain-benchmarks"
    path = folder / f"zipf-{size}-{part}.txt"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("w", encoding="ascii") as file:
            for text in _texts(size, part):
                file.write(text)
        unfinished.rename(path)
    return path


def _texts(size: int, part: int) -> Iterator[str]:
    vocabulary = _vocabulary(random.Random("zipf"))
    draw = random.Random(f"zipf {part}")
    weights = list(itertools.accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    while size > 0:
        words = draw.choices(vocabulary, cum_weights=weights, k=_WORDS_AT_ONCE)
        lines = (
            " ".join(words[first : first + WORDS_PER_LINE])
            for first in range(0, _WORDS_AT_ONCE, WORDS_PER_LINE)
        )
        text = "\n".join(lines) + "\n"
        yield text[:size]
        size -= len(text)


def _vocabulary(draw: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(draw.choices(_LETTERS, k=draw.randint(2, 10)))] = None
    return list(words)
