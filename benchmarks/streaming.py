"""Times the epochs of unbounded jobs.

    python benchmarks/streaming.py [--epochs 30] [--held 10000,1000000]

First a keyed job of two stages at 1,000 records per epoch, beside a bare `foreachBatch` that runs two stages
written by hand on the same rows: what checkpoints, state and routing cost. Then the same job with many keys
in state, of which each epoch touches 1,000: epochs should take as long, and write as much, whatever is held.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.path[0] = str(ROOT)

from opchain import Configuration, StreamExecutionEnvironment
from opchain.common import Types, WatermarkStrategy
from opchain.datastream.connectors import DiscardingSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.spark import SparkSource

from benchmarks.environment import PARALLELISM, spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

RECORDS = 1_000
WARM_UP = 5


class Numbers(UnboundedSource[int]):
    """All keys in the first epoch, then `RECORDS` of them in each."""

    def __init__(self, held: int) -> None:
        self.held = held

    def initial_position(self, now_ms: int) -> int:
        """Before the first."""
        del now_ms
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        """An epoch's worth."""
        del now_ms
        return start + (RECORDS if start else self.held)

    def splits_between(self, start: int, end: int, parallelism: int) -> Sequence[Sequence[range]]:
        """Every n-th for each subtask."""
        return [[range(start + subtask, end, parallelism)] for subtask in range(parallelism)]

    def splits(self, parallelism: int) -> Sequence[Sequence[range]]:
        """None: it is read epoch by epoch."""
        raise NotImplementedError(f"{parallelism} subtasks asked for splits without positions")

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[int]]:
        """Spread over the keys."""
        for first in range(split.start, split.stop, batch_size * split.step):
            behind = min(first + batch_size * split.step, split.stop)
            yield [number * 7919 % self.held for number in range(first, behind, split.step)]


class Count(KeyedProcessFunction[int, int, tuple[int, int]]):
    """How often each key has come."""

    def open(self, runtime_context: Any) -> None:
        """Declares the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        """Counts one."""
        del ctx
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def by_hand(session: Any, epochs: int) -> list[float]:
    """Seconds from epoch to epoch of a bare `foreachBatch` with two stages."""
    ended: list[float] = []
    done = threading.Event()

    def send(rows: Iterable[Any]) -> Iterator[tuple[int, list[int]]]:
        buckets: list[list[int]] = [[] for _ in range(PARALLELISM)]
        for row in rows:
            buckets[row[1] % PARALLELISM].append(row[1])
        yield from enumerate(buckets)

    def count(buckets: Iterable[tuple[int, list[int]]]) -> Iterator[int]:
        counts: dict[int, int] = {}
        for _, bucket in buckets:
            for key in bucket:
                counts[key] = counts.get(key, 0) + 1
        yield len(counts)

    def run(rows: Any, _batch: int) -> None:
        rows.rdd.mapPartitions(send).partitionBy(PARALLELISM, lambda key: key).mapPartitions(
            count
        ).collect()
        ended.append(time.perf_counter())
        if len(ended) > epochs + WARM_UP:
            done.set()

    with tempfile.TemporaryDirectory() as folder:
        query = rate(session).writeStream.foreachBatch(run).option("checkpointLocation", folder)
        started = query.start()
        done.wait()
        started.stop()
    return between(ended)


def rate(session: Any) -> Any:
    """1,000 rows in each micro-batch."""
    reader = session.readStream.format("rate-micro-batch")
    return reader.option("rowsPerBatch", RECORDS).option("numPartitions", PARALLELISM).load()


def ours(
    draw: Callable[[StreamExecutionEnvironment], Any], epochs: int
) -> tuple[list[float], float]:
    """Seconds from epoch to epoch, and the bytes of state files that an epoch writes."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Configuration()
        configuration.set_string("execution.checkpointing.dir", folder)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(PARALLELISM)
        draw(env)
        client = env.execute_async("streaming benchmark")
        found: dict[str, float] = {}
        written: dict[str, int] = {}
        while len(found) <= epochs + WARM_UP:
            for path in Path(folder).glob("chk-*/_metadata"):
                found.setdefault(path.parent.name, path.stat().st_mtime)
            for path in Path(folder).glob("shared/*/*.state"):
                written.setdefault(f"{path.parent.name}/{path.name}", path.stat().st_size)
            if client.get_job_status().result().is_globally_terminal_state():
                client.get_job_execution_result().result()
            time.sleep(0.01)
        client.cancel().result()
    sizes = sorted(written.values())
    return between(sorted(found.values())), statistics.median(sizes) * PARALLELISM if sizes else 0.0


def between(ended: list[float]) -> list[float]:
    """The times from one to the next, without those of the beginning."""
    return [
        later - earlier
        for earlier, later in zip(ended[WARM_UP:], ended[WARM_UP + 1 :], strict=False)
    ]


def told(name: str, seconds: list[float]) -> str:
    """Median and 95th percentile."""
    p95 = statistics.quantiles(seconds, n=20)[-1]
    return f"{name:<44} {1000 * statistics.median(seconds):8.0f} ms   p95 {1000 * p95:8.0f} ms"


def main() -> int:
    """Runs everything, and prints as it goes."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held", default="10000,1000000", help="keys in state")
    options = parser.parse_args()
    session = spark_session()

    def keyed(env: StreamExecutionEnvironment) -> None:
        source = SparkSource(
            "rate-micro-batch",
            {"rowsPerBatch": RECORDS, "numPartitions": PARALLELISM},
            is_streaming=True,
        )
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
        counts = rows.map(lambda row: row[1] % 10_000).key_by(lambda key: key).process(Count())
        counts.sink_to(DiscardingSink())

    ratios = []
    for _ in range(options.rounds):
        bare = by_hand(session, options.epochs)
        own, written = ours(keyed, options.epochs)
        ratios.append(statistics.median(own) / statistics.median(bare))
        print(told("bare foreachBatch, two stages", bare))
        print(told("opchain, two stages, state, checkpoints", own), f"  {written:,.0f} bytes")
    print(f"ratio of medians: {statistics.median(ratios):.2f} (target: at most 1.5)")
    for held in map(int, options.held.split(",")):

        def holding(env: StreamExecutionEnvironment, held: int = held) -> None:
            numbers = env.from_source(Numbers(held), WatermarkStrategy.no_watermarks(), "numbers")
            numbers.key_by(lambda key: key).process(Count()).sink_to(DiscardingSink())

        own, written = ours(holding, options.epochs)
        print(told(f"opchain, {held:,} keys held", own), f"  {written:,.0f} bytes")
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
