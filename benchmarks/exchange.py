"""Compares ways to shuffle buffers with Spark: seconds, and megabytes of a Python worker.

Run `python benchmarks/exchange.py`. Each way has its own session on `local[2]`, with one shuffle to warm up and
five measured ones: two tasks send random bytes in buffers to 2, 64 or 100 tasks, which count them. The ways
alternate, twice. runtime/spark/exchange.py uses the way called `frames`, and its docstring has the numbers.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.program.vertex_program import StageProgram
from opchain.runtime.records.elements import Buffer
from opchain.runtime.spark.exchange import addressed, from_frame, shuffled, to_frame, written_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import RDD, SparkContext

SENDERS = 2
ROUNDS = 5
CASES = ((1000, 256 * 1024, 2), (16_000, 16 * 1024, 64), (1200, 256 * 1024, 100))
"""(number of buffers, bytes of a buffer, number of receiving tasks)"""


def buffers(sender: int, count: int, size: int, targets: int) -> Iterator[Buffer]:
    """The buffers of one sender."""
    payload = os.urandom(size - 8)
    for number in range(count // SENDERS):
        yield Buffer(
            number % targets, 0, sender, number // targets, payload + number.to_bytes(8, "big")
        )


def counted(arrived: Iterable[Buffer]) -> Iterator[tuple[int, int]]:
    """The number of received buffers, and the peak memory of this worker in megabytes."""
    count = sum(1 for _ in arrived)
    yield count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def sending(context: SparkContext, send: Callable[[int], Iterable[Any]]) -> RDD[Any]:
    """An RDD of everything that the senders send. The same workers receive, so their memory includes both sides."""

    def run(sender: int, nothing: Iterable[Any]) -> Iterator[Any]:
        yield from nothing
        yield from send(sender)

    return context.parallelize((), SENDERS).mapPartitionsWithIndex(run)


def by_pairs(context: SparkContext, count: int, size: int, targets: int) -> RDD[Any]:
    """`partitionBy` of (partition, buffer)."""
    sent = sending(
        context,
        lambda sender: ((b.target, tuple(b)) for b in buffers(sender, count, size, targets)),
    )
    arrived = sent.partitionBy(targets, lambda target: target)
    return arrived.mapPartitions(lambda pairs: counted(Buffer(*fields) for _, fields in pairs))


def by_framed_pairs(context: SparkContext, count: int, size: int, targets: int) -> RDD[Any]:
    """`partitionBy` of (partition, frame)."""
    sent = sending(
        context,
        lambda sender: ((b.target, to_frame(b)) for b in buffers(sender, count, size, targets)),
    )
    arrived = sent.partitionBy(targets, lambda target: target)
    return arrived.mapPartitions(lambda pairs: counted(from_frame(frame) for _, frame in pairs))


def by_sorting(context: SparkContext, count: int, size: int, targets: int) -> RDD[Any]:
    """`repartitionAndSortWithinPartitions`, with the buffer's address as the key."""
    sent = sending(
        context, lambda sender: ((b[:4], b.payload) for b in buffers(sender, count, size, targets))
    )
    arrived = sent.repartitionAndSortWithinPartitions(targets, lambda address: address[0])
    return arrived.mapPartitions(
        lambda pairs: counted(Buffer(*address, payload) for address, payload in pairs)
    )


def by_frames(context: SparkContext, count: int, size: int, targets: int) -> RDD[Any]:
    """Frames written directly into Spark's PairwiseRDD."""
    stage = StageProgram(1, range(targets), (), tuple((target,) for target in range(targets)))
    sent = sending(context, lambda sender: addressed(buffers(sender, count, size, targets), stage))
    arrived = shuffled(written_raw(sent), targets, "frames")
    return arrived.mapPartitions(lambda frames: counted(map(from_frame, frames)))


WAYS = {
    "pairs": by_pairs,
    "framed pairs": by_framed_pairs,
    "sorted": by_sorting,
    "frames": by_frames,
}


def measured(way: str, count: int, size: int, targets: int) -> tuple[list[float], int]:
    """The seconds of each round, and the greatest peak memory of a worker."""
    from opchain.runtime.spark.session import active_or_new_session  # noqa: PLC0415

    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
    )
    context = active_or_new_session().sparkContext
    WAYS[way](context, SENDERS * targets, 1024, targets).collect()
    seconds, memory = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        arrived = WAYS[way](context, count, size, targets).collect()
        seconds.append(time.perf_counter() - start)
        assert sum(number for number, _ in arrived) == count // SENDERS * SENDERS
        memory = max(memory, *(peak for _, peak in arrived))
    return seconds, memory


def main() -> None:
    """Measures all ways, or the way named on the command line."""
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1], *map(int, sys.argv[2:]))))
        return
    for case in CASES:
        print("{} buffers of {} bytes from 2 tasks to {}".format(*case))
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        memory = dict.fromkeys(WAYS, 0)
        for way in [*WAYS, *WAYS]:
            command = [sys.executable, __file__, way, *map(str, case)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rounds, peak = json.loads(done.stdout)
            seconds[way] += rounds
            memory[way] = max(memory[way], peak)
        for way, rounds in seconds.items():
            print(
                f"  {way:14}{statistics.median(rounds):6.2f} s  best {min(rounds):5.2f} s{memory[way]:6} MB"
            )


if __name__ == "__main__":
    main()
