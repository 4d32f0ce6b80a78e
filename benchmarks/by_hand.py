"""What the baselines share: the PySpark code that an expert writes around a loop of his own.

The loops do the same work as the programs, and read and write JSON with the same library. They are spared what they
don't need: a field that is always 1 doesn't travel, a result that is only counted isn't built, and their shuffles take
Python's own `hash`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM
from benchmarks.tally import tallied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

BATCH = 10_000
"""Records of one pickle; what Spark itself would put into one is at most 1,024."""


def parts(context: Any, loop: Callable[[int], Iterator[Any]]) -> Any:
    """An RDD with a partition per core, each of which runs a loop: `loop(partition)`."""
    numbers = context.parallelize(range(PARALLELISM), PARALLELISM)
    return numbers.mapPartitionsWithIndex(lambda part, _: loop(part))


def shuffled(addressed: Any) -> Any:
    """Sends pairs of partition and pickled batch there; gives the batches."""
    return addressed.partitionBy(PARALLELISM, lambda partition: partition).values()


def chunks(count: int, part: int) -> Iterator[range]:
    """The numbers below `count` that are this part's, in chunks of a batch."""
    first, last = part * count // PARALLELISM, (part + 1) * count // PARALLELISM
    for start in range(first, last, BATCH):
        yield range(start, min(start + BATCH, last))


def texts(path: Path) -> Iterator[str]:
    """The lines of a file."""
    with path.open(encoding="utf-8") as file:
        yield from file


def batched(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lists of a tenth of a batch of lines."""
    lines = iter(lines)
    while batch := list(islice(lines, BATCH // 10)):
        yield batch


def tallied_pairs(pairs: Iterable[tuple[Any, int]]) -> Iterator[tuple[int, int]]:
    """How many pairs there are, and the sum of their second fields."""
    yield tallied(number for _, number in pairs)
