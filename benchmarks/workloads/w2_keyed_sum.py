"""W2: numbers -> key -> running sum per key, emitted for every record."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import chunks, parts, shuffled, tallied_pairs
from benchmarks.environment import PARALLELISM
from benchmarks.measure import Baseline, Workload
from benchmarks.tally import Tally, added, tally_by
from opchain.common import Types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain import StreamExecutionEnvironment


def workloads(session: Any, scale: float) -> list[Workload]:
    """2,000,000 numbers, with 1,000 and with 1,000,000 keys."""
    count = int(2_000_000 * scale)
    return [
        _workload(session.sparkContext, count, 1_000),
        _workload(session.sparkContext, count, max(1, int(1_000_000 * scale))),
    ]


def _workload(context: Any, count: int, keys: int) -> Workload:
    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: _batches_by_hand(count, keys, part))
        return added(shuffled(sent).mapPartitions(_sums_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        pairs = context.range(0, count, numSlices=PARALLELISM).map(lambda x: (x * 7919 % keys, x))
        running = pairs.partitionBy(PARALLELISM).mapPartitions(_running)
        return added(running.mapPartitions(tallied_pairs).collect())

    def loop() -> tuple[int, ...]:
        sums: dict[int, int] = {}
        check = 0
        for x in range(count):
            key = x * 7919 % keys
            total = sums[key] = sums.get(key, 0) + x
            check += total
        return count, check

    return Workload(
        f"W2 keyed sum, {keys:,} keys",
        count,
        lambda: tally_by("W2", lambda env, folder: draw(env, count, keys, folder)),
        (
            Baseline("(a) by hand", by_hand, 0.9),
            Baseline("(b) idiomatic RDD", idiomatic, 1.5),
            Baseline("(c) plain loop", loop),
        ),
    )


def draw(env: StreamExecutionEnvironment, count: int, keys: int, folder: str) -> None:
    """The program."""
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    pairs = env.from_sequence(0, count - 1).map(lambda x: (x * 7919 % keys, x), output_type=pair)
    sums = pairs.key_by(lambda p: p[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    sums.flat_map(Tally(folder, 1)).print()


def _batches_by_hand(count: int, keys: int, part: int) -> Iterator[tuple[int, bytes]]:
    for chunk in chunks(count, part):
        buckets: list[list[tuple[int, int]]] = [[] for _ in range(PARALLELISM)]
        for x in chunk:
            key = x * 7919 % keys
            buckets[key % PARALLELISM].append((key, x))
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _sums_by_hand(batches: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    sums: dict[int, int] = {}
    results = check = 0
    for batch in batches:
        for key, x in pickle.loads(batch):
            total = sums[key] = sums.get(key, 0) + x
            results += 1
            check += total
    yield results, check


def _running(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    sums: dict[int, int] = {}
    for key, x in pairs:
        sums[key] = sums.get(key, 0) + x
        yield key, sums[key]
