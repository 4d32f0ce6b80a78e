"""Compares a count per key in tumbling windows with a hand-written loop.

    python benchmarks/windows.py [--records 1000000] [--keys 1000] [--window-ms 10000]

The task of the window's vertex gets batches as its exchange delivers them, with a watermark after each. The loop runs
`pane[key] = pane.get(key, 0) + 1` over the same batches, with a dictionary per window. It skips late windows and
emits finished ones. `general` is the operator for custom assigners and triggers, used for the same window. The
result is nanoseconds per record, the fastest of five alternating rounds.
"""

from __future__ import annotations

import argparse
import gc
import time
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import AggregateFunction, StreamExecutionEnvironment
from opchain.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.operators import registry
from opchain.runtime.operators.registry import create_window_operator
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.task.stream_task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.windows.assigners import WindowAssigner

    Batches = list[tuple[list[Any], list[int]]]

BATCH = 4096
ROUNDS = 5
EVENTS_PER_SECOND = 10_000


class Count(AggregateFunction[Any, int, int]):
    """Counts."""

    def create_accumulator(self) -> int:
        """Zero."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:  # noqa: ARG002
        """One more."""
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """The count."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """The sum."""
        return acc_a + acc_b


def records(count: int, keys: int) -> Batches:
    """Batches of (key, number), slightly out of order, ten thousand records per second of event time."""
    random = Random(1)
    batches = []
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        values = [(random.randrange(keys), number) for number in numbers]
        batches.append(
            (
                values,
                [number * 1000 // EVENTS_PER_SECOND + random.randrange(50) for number in numbers],
            )
        )
    return batches


def by_hand(batches: Batches, size: int) -> int:
    """Runs the expert's loop; returns the number of counts."""
    panes: dict[int, dict[Any, int]] = {}
    emitted: list[Any] = []
    watermark = -1
    for values, timestamps in batches:
        for value, timestamp in zip(values, timestamps, strict=True):
            key = value[0]
            start = timestamp - timestamp % size
            pane = panes.get(start)
            if pane is None:
                if start + size <= watermark:
                    continue
                pane = panes[start] = {}
            pane[key] = pane.get(key, 0) + 1
        watermark = max(watermark, max(timestamps) - 50)
        for start in sorted(panes):
            if start + size <= watermark:
                emitted += panes.pop(start).values()
    for start in sorted(panes):
        emitted += panes.pop(start).values()
    return len(emitted)


def task_of(assigner: WindowAssigner[Any, Any], *, is_generated: bool) -> Callable[[], StreamTask]:
    """Returns a function that creates the task of the window's vertex."""
    configuration = Configuration()
    configuration.set_string("opchain.codegen.enabled", str(is_generated).lower())
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    stream = env.from_collection([(0, 0)]).assign_timestamps_and_watermarks(strategy)
    stream.key_by(itemgetter(0)).window(assigner).aggregate(Count()).sink_to(DiscardingSink())
    job = required(compile_program(env.program()).job_program)
    task = next(
        vertex.first_task for vertex in job.vertices if vertex.operators[0].spec.kind == "window"
    )
    return lambda: StreamTask(job, task, iter(()))


def by_task(batches: Batches, make: Callable[[], StreamTask]) -> int:
    """Runs the same batches through a task; returns the number of counts."""
    chain = make().chain
    chain.open()
    watermark = -1
    for values, timestamps in batches:
        chain.process_batch(0, values, timestamps)
        watermark = max(watermark, max(timestamps) - 50)
        chain.process_watermark(0, watermark)
    chain.process_watermark(0, 2**63 - 1)
    chain.flush()
    return chain.head.records_out


def seconds(run: Callable[[], int], counts: set[int]) -> float:
    """The seconds of `run`, whose number of counts is added to `counts`."""
    gc.collect()
    start = time.perf_counter()
    counts.add(run())
    return time.perf_counter() - start


def main() -> None:
    """Prints a line for each contender."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--window-ms", type=int, default=10_000)
    arguments = parser.parse_args()
    size = arguments.window_ms
    batches = records(arguments.records, arguments.keys)
    tumbling, sliding = (
        TumblingEventTimeWindows.of(size),
        SlidingEventTimeWindows.of(size, size // 5),
    )

    def general() -> int:
        registry.OPERATORS[specs.WindowSpec] = WindowOperator
        try:
            return by_task(batches, task_of(tumbling, is_generated=False))
        finally:
            registry.OPERATORS[specs.WindowSpec] = create_window_operator

    ways: dict[str, Callable[[], int]] = {
        "by hand": lambda: by_hand(batches, size),
        "generated": lambda: by_task(batches, task_of(tumbling, is_generated=True)),
        "interpreted": lambda: by_task(batches, task_of(tumbling, is_generated=False)),
        "general": general,
    }
    counts: set[int] = set()
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, run in ways.items():
            best[name] = min(best[name], seconds(run, counts))
    assert len(counts) == 1, f"the numbers of results differ: {counts}"
    hand = best["by hand"]
    for name, taken in best.items():
        print(f"{name:12} {taken / arguments.records * 1e9:6.0f} ns  {hand / taken:5.2f} x")
    taken = seconds(lambda: by_task(batches, task_of(sliding, is_generated=True)), set())
    print(f"{'sliding, 5':12} {taken / arguments.records * 1e9:6.0f} ns")


if __name__ == "__main__":
    main()
