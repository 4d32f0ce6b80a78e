"""Shared by the baselines: the PySpark code that an expert writes around a hand-written loop.

The loops do the same work as the programs, and read and write JSON with the same library. They skip all work that they
do not need: a field that is always 1 is not sent, a result that is only counted is not built, and their shuffles use
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
"""Records per pickle. (Spark itself pickles at most 1,024 records at once.)"""


def parts(context: Any, loop: Callable[[int], Iterator[Any]]) -> Any:
    """An RDD with one partition per core. Each partition runs `loop(partition)`."""
    numbers = context.parallelize(range(PARALLELISM), PARALLELISM)
    return numbers.mapPartitionsWithIndex(lambda part, _: loop(part))


def shuffled(addressed: Any) -> Any:
    """Sends each pair of (partition, pickled batch) to its partition, and returns an RDD of the batches."""
    return addressed.partitionBy(PARALLELISM, lambda partition: partition).values()


def chunks(count: int, part: int) -> Iterator[range]:
    """This partition's share of the numbers below `count`, in ranges of `BATCH` numbers."""
    first, last = part * count // PARALLELISM, (part + 1) * count // PARALLELISM
    for start in range(first, last, BATCH):
        yield range(start, min(start + BATCH, last))


def texts(path: Path) -> Iterator[str]:
    """The lines of a file."""
    with path.open(encoding="utf-8") as file:
        yield from file


def batched(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lists of `BATCH // 10` lines."""
    lines = iter(lines)
    while batch := list(islice(lines, BATCH // 10)):
        yield batch


def tallied_pairs(pairs: Iterable[tuple[Any, int]]) -> Iterator[tuple[int, int]]:
    """How many pairs there are, and the sum of their second fields."""
    yield tallied(number for _, number in pairs)
