"""What the baselines share: the PySpark code that an expert writes around a loop of his own.

The loops do the same work as the programs: where a program emits a record, so do they, as the same tuple into a
list per batch. They are spared what they don't need: a field that is always 1 doesn't travel, and their shuffles
take Python's own `hash`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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


def digested(pairs: Iterable[tuple[Any, int]]) -> Iterator[tuple[int, int]]:
    """How many pairs there are, and the sum of their second fields."""
    count = check = 0
    for _, number in pairs:
        count += 1
        check += number
    yield count, check
