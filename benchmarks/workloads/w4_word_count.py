"""W4: text file -> words -> count per word; BATCH: once per word, STREAMING: after every word."""

from __future__ import annotations

import pickle
from collections import Counter
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import digested, parts, shuffled
from benchmarks.environment import PARALLELISM, environment
from benchmarks.measure import Baseline, Workload
from benchmarks.sinks import DigestSink, added, digest_of
from benchmarks.zipf_text import blocks, zipf_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opchain import StreamExecutionEnvironment


def workloads(session: Any, scale: float) -> list[Workload]:
    """A text of 100 MB, some 14 million words, 100,000 different ones."""
    path = zipf_text(max(1, int(100 * scale)))
    with path.open() as file:
        words = sum(len(line.split()) for line in file)
    return [
        _batch(session.sparkContext, path, words),
        _streaming(session.sparkContext, path, words),
    ]


def _batch(context: Any, path: Path, words: int) -> Workload:
    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: _counts_by_hand(path, part))
        return added(shuffled(sent).mapPartitions(_merged_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        ones = (
            context.textFile(str(path), PARALLELISM).flatMap(str.split).map(lambda word: (word, 1))
        )
        counts = ones.reduceByKey(add, PARALLELISM)
        return added(counts.mapPartitions(digested).collect())

    def loop() -> tuple[int, ...]:
        counts: Counter[str] = Counter()
        with path.open() as file:
            for line in file:
                counts.update(line.split())
        return len(counts), sum(counts.values())

    return Workload(
        "W4 word count, BATCH",
        words,
        lambda: run(path, "BATCH"),
        (
            Baseline("(a) by hand", by_hand, 0.9),
            Baseline("(b) idiomatic RDD", idiomatic, 1.5),
            Baseline("(c) plain loop", loop),
        ),
    )


def _streaming(context: Any, path: Path, words: int) -> Workload:
    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: _words_by_hand(path, part))
        return added(shuffled(sent).mapPartitions(_running_by_hand).collect())

    def idiomatic() -> tuple[int, ...]:
        ones = (
            context.textFile(str(path), PARALLELISM).flatMap(str.split).map(lambda word: (word, 1))
        )
        running = ones.partitionBy(PARALLELISM).mapPartitions(_running)
        return added(running.mapPartitions(digested).collect())

    def loop() -> tuple[int, ...]:
        counts: dict[str, int] = {}
        check = 0
        with path.open() as file:
            for line in file:
                for word in line.split():
                    count = counts[word] = counts.get(word, 0) + 1
                    check += count
        return words, check

    return Workload(
        "W4 word count, STREAMING",
        words,
        lambda: run(path, "STREAMING"),
        (
            Baseline("(a) by hand", by_hand, 0.9),
            Baseline("(b) idiomatic RDD", idiomatic, 1.5),
            Baseline("(c) plain loop", loop),
        ),
    )


def run(path: Path, mode: str) -> tuple[int, ...]:
    """Runs the program in a mode: how many results, and the sum of their counts."""
    env = environment(execution__runtime_mode=mode)
    draw(env, path)
    env.execute("W4")
    return digest_of("W4")


def draw(env: StreamExecutionEnvironment, path: Path) -> None:
    """The program."""
    words = env.read_text_file(str(path)).flat_map(lambda line: line.split())
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    ones.reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(DigestSink("W4", _digest))


def _digest(counts: Sequence[tuple[str, int]]) -> tuple[int, int]:
    return len(counts), sum(map(itemgetter(1), counts))


def _counts_by_hand(path: Path, part: int) -> Iterator[tuple[int, bytes]]:
    counts: Counter[str] = Counter()
    for block in blocks(path, part):
        counts.update(block.split())
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


def _words_by_hand(path: Path, part: int) -> Iterator[tuple[int, bytes]]:
    for block in blocks(path, part):
        buckets: list[list[str]] = [[] for _ in range(PARALLELISM)]
        for word in block.split():
            buckets[hash(word) % PARALLELISM].append(word)
        for target, bucket in enumerate(buckets):
            yield target, pickle.dumps(bucket, 5)


def _running_by_hand(batches: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    counts: dict[str, int] = {}
    for batch in batches:
        emitted: list[tuple[str, int]] = []
        for word in pickle.loads(batch):
            count = counts[word] = counts.get(word, 0) + 1
            emitted.append((word, count))
        yield _digest(emitted)


def _running(pairs: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    counts: dict[str, int] = {}
    for word, one in pairs:
        counts[word] = counts.get(word, 0) + one
        yield word, counts[word]
