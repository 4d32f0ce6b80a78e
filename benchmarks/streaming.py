"""Measures the epochs of unbounded jobs.

    python benchmarks/streaming.py [--only overhead|held|state|touched] [--quick] [--json FILE]

- overhead: the cost of checkpoints, state and routing. A keyed job of two stages at 1,000 records per epoch is compared
  with a bare `foreachBatch` that runs two hand-written stages on the same rows.
- held: the same job with many keys in state, of which each epoch updates 1,000, with both state backends. The number of
  keys should change neither the duration of epochs nor the bytes that they write.
- state: the same without Spark, to measure only the tasks; and an epoch of a run that restores a checkpoint first.
- touched: without Spark, with more and more keys updated per epoch. A checkpoint should grow with this number.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
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

from benchmarks.environment import PARALLELISM, environment, spark_session
from opchain.common import Types, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream.connectors import DiscardingSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, TaskMetadata
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.live_tasks import operators_with_state
from opchain.runtime.epochs.local_epochs import LocalEpochs
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain import StreamExecutionEnvironment
    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.program.vertex_program import JobProgram

RECORDS = 1_000
WARM_UP = 5


class Numbers(UnboundedSource[int]):
    """The first epoch reads a record of each key, each later epoch reads `RECORDS` records."""

    def __init__(self, held: int) -> None:
        self.held = held

    def initial_position(self, now_ms: int) -> int:
        """The position before the first record."""
        del now_ms
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        """The position after the records of one epoch."""
        del now_ms
        return start + (RECORDS if start else self.held)

    def splits_between(self, start: int, end: int, parallelism: int) -> Sequence[Sequence[range]]:
        """Every n-th record for each subtask."""
        return [[range(start + subtask, end, parallelism)] for subtask in range(parallelism)]

    def splits(self, parallelism: int) -> Sequence[Sequence[range]]:
        """Raises an error: the source is read epoch by epoch."""
        raise NotImplementedError(f"{parallelism} subtasks asked for splits without positions")

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[int]]:
        """Reads a split: records spread over the keys."""
        for first in range(split.start, split.stop, batch_size * split.step):
            behind = min(first + batch_size * split.step, split.stop)
            yield [number * 7919 % self.held for number in range(first, behind, split.step)]


class Count(KeyedProcessFunction[int, int, tuple[int, int]]):
    """Counts the records of each key."""

    def open(self, runtime_context: Any) -> None:
        """Declares the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        """Counts a record."""
        del ctx
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def by_hand(session: Any, epochs: int) -> list[float]:
    """The seconds between epochs of a bare `foreachBatch` with two stages."""
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
    """A stream with 1,000 rows in each micro-batch."""
    reader = session.readStream.format("rate-micro-batch")
    return reader.option("rowsPerBatch", RECORDS).option("numPartitions", PARALLELISM).load()


def ours(
    draw: Callable[[StreamExecutionEnvironment], Any], epochs: int, backend: str = "hashmap"
) -> tuple[list[float], float]:
    """The seconds between epochs, and the bytes of state files that an epoch writes."""
    with tempfile.TemporaryDirectory() as folder:
        env = in_folder(folder, backend)
        draw(env)
        ended: list[float] = []
        written: list[int] = []
        done = threading.Event()

        def note(epoch: EpochProgress) -> None:
            ended.append(time.perf_counter())
            written.append(
                sum(
                    operator.written_bytes for item in epoch.vertices for operator in item.operators
                )
            )
            if len(ended) > epochs + WARM_UP:
                done.set()

        env.add_epoch_listener(note)
        client = env.execute_async("streaming benchmark")
        client.get_job_execution_result().add_done_callback(lambda _: done.set())
        done.wait()
        if client.get_job_status().result().is_globally_terminal_state():
            client.get_job_execution_result().result()
        client.cancel().result()
    return between(ended), statistics.median(written)


def in_folder(folder: str, backend: str) -> StreamExecutionEnvironment:
    """An environment with a checkpoint folder and a state backend."""
    return environment(execution__checkpointing__dir=folder, state__backend__type=backend)


def in_process(held: int, touched: int, epochs: int, backend: str) -> dict[str, float]:
    """Measures epochs without Spark: the milliseconds that the tasks need for `held` keys.

    The first epochs, which write the first base and the first changes, are not counted. If other programs use the
    machine, compare processor time, not wall-clock time. `recovery_ms` is the time of the first epoch of a new run
    that resumes from the last checkpoint.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = in_folder(folder, backend)
        numbers = env.from_source(Numbers(held), WatermarkStrategy.no_watermarks(), "numbers")
        numbers.key_by(lambda key: key).process(Count()).sink_to(DiscardingSink())
        job = compile_program(env.program()).job_program
        assert job is not None
        run = InProcess(job, folder)
        run.epoch(range(held))
        took: list[float] = []
        worked: list[float] = []
        sizes: list[int] = []
        for number in range(epochs + WARM_UP):
            first = number * touched
            before = time.process_time()
            took.append(run.epoch(range(first, first + touched)))
            worked.append(time.process_time() - before)
            sizes.append(run.written_bytes)
        run.close()
        again = InProcess(job, folder, run.latest)
        before = time.process_time()
        recovery = again.epoch(range(touched))
        recovering = time.process_time() - before
        again.close()
    counted = took[WARM_UP:]
    return {
        "median_ms": 1000 * statistics.median(counted),
        "p95_ms": 1000 * statistics.quantiles(counted, n=20)[-1],
        "cpu_ms": 1000 * statistics.median(worked[WARM_UP:]),
        "longest_cpu_ms": 1000 * max(worked[WARM_UP:]),
        "checkpoint_bytes": statistics.median(sizes),
        "recovery_ms": 1000 * recovery,
        "recovery_cpu_ms": 1000 * recovering,
    }


class InProcess:
    """Runs a job whose source is `Numbers`, epoch by epoch."""

    def __init__(
        self, job: JobProgram, folder: str, latest: CheckpointMetadata | None = None
    ) -> None:
        self.job, self.latest = job, latest
        self.storage = checkpoint_storage(folder)
        self.epochs = LocalEpochs(job, self.storage)
        self.written_bytes = 0

    def epoch(self, numbers: range) -> float:
        """Runs an epoch with some numbers; returns its seconds."""
        latest, job = self.latest, self.job
        epoch = Epoch(1 if latest is None else latest.checkpoint_id + 1, 0, is_first=latest is None)
        source = job.vertices[0]
        deliveries = {
            source.first_task + subtask: [
                pickle.dumps(range(numbers.start + subtask, numbers.stop, source.parallelism))
            ]
            for subtask in range(source.parallelism)
        }
        started = time.perf_counter()
        outcome = self.epochs.run(epoch, deliveries, latest)
        seconds = time.perf_counter() - started
        tasks = tuple(
            TaskMetadata(
                vertex.first_task + subtask,
                vertex.vertex_id,
                subtask,
                outcome.snapshots[vertex.first_task + subtask].state,
                outcome.snapshots[vertex.first_task + subtask].progress,
            )
            for vertex in job.vertices
            for subtask in range(vertex.parallelism)
        )
        operators = tuple(operators_with_state(job, outcome.snapshots))
        self.latest = CheckpointMetadata(epoch.checkpoint_id, 0, "job", "run", operators, tasks)
        names = {file.name: file.size for task in tasks for file in task.state.files[-1:]}
        prefix = f"shared/{epoch.checkpoint_id}/"
        self.written_bytes = sum(size for name, size in names.items() if name.startswith(prefix))
        return seconds

    def close(self) -> None:
        """Closes the tasks."""
        self.epochs.close()


def between(ended: list[float]) -> list[float]:
    """The time between two epochs each, without the epochs that warm up."""
    return [
        later - earlier
        for earlier, later in zip(ended[WARM_UP:], ended[WARM_UP + 1 :], strict=False)
    ]


def summary(name: str, seconds: list[float]) -> str:
    """A line with median and 95th percentile."""
    p95 = statistics.quantiles(seconds, n=20)[-1]
    return f"{name:<44} {1000 * statistics.median(seconds):8.0f} ms   p95 {1000 * p95:8.0f} ms"


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    """Compares the keyed job of two stages with the bare `foreachBatch`."""
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
        print(summary("bare foreachBatch, two stages", bare))
        print(summary("opchain, two stages, state, checkpoints", own), f"  {written:,.0f} bytes")
    ratio = statistics.median(ratios)
    print(f"ratio of medians: {ratio:.2f} (target: at most 1.5)")
    return {"ratio": ratio}


def held_on_spark(options: argparse.Namespace) -> dict[str, Any]:
    """Measures epochs on Spark that update 1,000 keys, with more and more keys in state."""
    spark_session()
    found: dict[str, Any] = {}
    for backend in options.backends.split(","):
        for held in map(int, options.held.split(",")):

            def holding(env: StreamExecutionEnvironment, held: int = held) -> None:
                source = Numbers(held)
                numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
                numbers.key_by(lambda key: key).process(Count()).sink_to(DiscardingSink())

            own, written = ours(holding, options.epochs, backend)
            print(
                summary(f"opchain, {backend}, {held:,} keys held", own), f"  {written:,.0f} bytes"
            )
            found[f"{backend} {held}"] = {
                "median_ms": 1000 * statistics.median(own),
                "p95_ms": 1000 * statistics.quantiles(own, n=20)[-1],
                "checkpoint_bytes": written,
            }
    return found


def held_in_process(options: argparse.Namespace) -> dict[str, Any]:
    """Measures the tasks without Spark: epochs that update 1,000 keys, and recovery, with more and more keys in state."""
    found: dict[str, Any] = {}
    for backend in options.backends.split(","):
        for held in map(int, options.held.split(",")):
            numbers = in_process(held, RECORDS, options.epochs, backend)
            show(f"{backend}, {held:,} keys held, {RECORDS:,} touched", numbers)
            found[f"{backend} {held}"] = numbers
    return found


def touched_in_process(options: argparse.Namespace) -> dict[str, Any]:
    """Measures the bytes of a checkpoint by the number of updated keys, with the first number of `--held` in state."""
    held = int(options.held.split(",")[-1 if options.quick else 1])
    found: dict[str, Any] = {}
    for touched in (100, 1_000, 10_000):
        numbers = in_process(held, touched, options.epochs, "hashmap")
        show(f"hashmap, {held:,} keys held, {touched:,} touched", numbers)
        found[str(touched)] = numbers
    return found


def show(name: str, numbers: dict[str, float]) -> None:
    """Prints a line with the results of `in_process`."""
    print(
        f"{name:<44} {numbers['median_ms']:8.1f} ms, p95 {numbers['p95_ms']:8.1f} (processor "
        f"{numbers['cpu_ms']:7.1f}, at most {numbers['longest_cpu_ms']:7.1f})  "
        f"{numbers['checkpoint_bytes']:10,.0f} bytes  recovery {numbers['recovery_ms']:7.0f} ms "
        f"(processor {numbers['recovery_cpu_ms']:6.0f})",
        flush=True,
    )


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "overhead": overhead,
    "held": held_on_spark,
    "state": held_in_process,
    "touched": touched_in_process,
}


def main() -> int:
    """Runs the measurements, and prints the results."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held", default="10000,1000000,5000000", help="numbers of keys in state")
    parser.add_argument("--backends", default="hashmap,rocksdb")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="run only this part; may be repeated"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument(
        "--quick", action="store_true", help="few keys and few epochs, to test the benchmark"
    )
    options = parser.parse_args()
    if options.quick:
        options.epochs, options.rounds, options.held = 5, 1, "1000,10000"
    found = {name: PARTS[name](options) for name in options.only or PARTS}
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
