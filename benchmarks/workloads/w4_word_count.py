"""W4: text files -> words -> count per word. Counts are emitted once per word in BATCH, after every word in STREAMING."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import batched, parts, shuffled, tallied_pairs, texts
from benchmarks.environment import PARALLELISM
from benchmarks.in_process import lines
from benchmarks.measure import Baseline, Workload
from benchmarks.tally import Tally, added, tally_by
from benchmarks.zipf_text import zipf_texts
from opchain.common import Types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opchain import StreamExecutionEnvironment

    Paths = Sequence[Path]


def workloads(session: Any, scale: float) -> list[Workload]:
    """A text of 100 MB: about 14 million words, of which 100,000 are distinct."""
    paths = zipf_texts(max(1, int(100 * scale)))
    words = sum(len(line.split()) for path in paths for line in texts(path))
    return [
        _batch(session.sparkContext, paths, words),
        _streaming(session.sparkContext, paths, words),
    ]


def _batch(context: Any, paths: Paths, words: int) -> Workload:
    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: _counts_by_hand(paths[part]))
        return added(shuffled(sent).mapPartitions(_merged_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        ones = (
            context.textFile(",".join(map(str, paths)), PARALLELISM)
            .flatMap(str.split)
            .map(lambda word: (word, 1))
        )
        counts = ones.reduceByKey(add, PARALLELISM)
        return added(counts.mapPartitions(tallied_pairs).collect())

    def loop() -> tuple[int, ...]:
        counts: Counter[str] = Counter()
        for line in chain.from_iterable(map(texts, paths)):
            counts.update(line.split())
        return len(counts), sum(counts.values())

    return Workload(
        "W4 word count, BATCH",
        words,
        lambda: run(paths, "BATCH"),
        (
            Baseline("(a) by hand", by_hand, 0.9),
            Baseline("(b) idiomatic RDD", idiomatic, 1.5),
            Baseline("(c) plain loop", loop),
        ),
    )


def _streaming(context: Any, paths: Paths, words: int) -> Workload:
    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: _words_by_hand(paths[part]))
        return added(shuffled(sent).mapPartitions(_running_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        ones = (
            context.textFile(",".join(map(str, paths)), PARALLELISM)
            .flatMap(str.split)
            .map(lambda word: (word, 1))
        )
        running = ones.partitionBy(PARALLELISM).mapPartitions(_running)
        return added(running.mapPartitions(tallied_pairs).collect())

    def loop() -> tuple[int, ...]:
        counts: dict[str, int] = {}
        check = 0
        for line in chain.from_iterable(map(texts, paths)):
            for word in line.split():
                count = counts[word] = counts.get(word, 0) + 1
                check += count
        return words, check

    return Workload(
        "W4 word count, STREAMING",
        words,
        lambda: run(paths, "STREAMING"),
        (
            Baseline("(a) by hand", by_hand, 0.9),
            Baseline("(b) idiomatic RDD", idiomatic, 1.5),
            Baseline("(c) plain loop", loop),
        ),
    )


def run(paths: Paths, mode: str) -> tuple[int, ...]:
    """Runs the program in a mode; returns the number of results and the sum of their counts."""
    return tally_by(
        "W4", lambda env, folder: draw(env, paths, folder), execution__runtime_mode=mode
    )


def draw(env: StreamExecutionEnvironment, paths: Paths, folder: str) -> None:
    """The program."""
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    words = lines(env, paths).flat_map(lambda line: line.split(), output_type=Types.STRING())
    ones = words.map(lambda word: (word, 1), output_type=pair).key_by(lambda p: p[0])
    ones.reduce(lambda a, b: (a[0], a[1] + b[1])).flat_map(Tally(folder, 1)).print()


def _counts_by_hand(path: Path) -> Iterator[tuple[int, bytes]]:
    counts: Counter[str] = Counter()
    for line in texts(path):
        counts.update(line.split())
    buckets: list[dict[str, int]] = [{} for _ in range(PARALLELISM)]
    for word, count in counts.items():
        buckets[hash(word) % PARALLELISM][word] = count
    for target, bucket in enumerate(buckets):
        yield target, pickle.dumps(bucket, 5)


def _merged_by_hand(batches: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    counts: Counter[str] = Counter()
    for batch in batches:
        counts.update(pickle.loads(batch))
    yield len(counts), sum(counts.values())


def _words_by_hand(path: Path) -> Iterator[tuple[int, bytes]]:
    for block in batched(texts(path)):
        buckets: list[list[str]] = [[] for _ in range(PARALLELISM)]
        for line in block:
            for word in line.split():
                buckets[hash(word) % PARALLELISM].append(word)
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _running_by_hand(batches: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    counts: dict[str, int] = {}
    results = check = 0
    for batch in batches:
        for word in pickle.loads(batch):
            count = counts[word] = counts.get(word, 0) + 1
            results += 1
            check += count
    yield results, check


def _running(pairs: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for word, one in pairs:
        counts[word] = counts.get(word, 0) + one
        yield word, counts[word]
