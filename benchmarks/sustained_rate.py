"""Finds the greatest rate with which an unbounded job with keyed windows keeps up, and measures the job beyond it.

    python benchmarks/sustained_rate.py [--rates 25000,50000,...] [--seconds 30] [--json FILE]

A source emits records at a fixed rate. Their timestamps are the time of day. The job counts 10,000 keys in event-time
windows of one second, with a checkpoint per epoch. The records that arrive during one epoch are the input of the next
one. Below saturation, the duration of epochs and the lag of the watermark settle. Beyond it, both grow without limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.path[0] = str(ROOT)

from benchmarks.environment import environment, spark_session
from opchain.common import WatermarkStrategy
from opchain.common.time import Time
from opchain.datastream.connectors import DiscardingSink
from opchain.datastream.functions import AggregateFunction
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.unbounded_source import UnboundedSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.epochs.epoch_progress import EpochProgress

KEYS = 10_000
EPOCHS = 15
"""A rate is tested for at least so many epochs. The last third of them is compared with the third before it."""
_GROWS = 1.15
"""Epochs or lags that are longer than in the third before by at least this factor have not settled."""


class Steady(UnboundedSource[tuple[int, int]]):
    """Records are (key, time of day in ms), at a rate per second. A position is (start in ms, number of records since)."""

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def initial_position(self, now_ms: int) -> tuple[int, int]:
        """The position before the first record."""
        return now_ms, 0

    def latest_position(self, start: tuple[int, int], now_ms: int) -> tuple[int, int]:
        """The position after all records that have arrived."""
        begin, _ = start
        return begin, (now_ms - begin) * self.rate // 1000

    def splits_between(
        self, start: tuple[int, int], end: tuple[int, int], parallelism: int
    ) -> Sequence[Sequence[tuple[int, range]]]:
        """Every n-th record for each subtask."""
        (begin, first), (_, last) = start, end
        return [
            [(begin, range(first + subtask, last, parallelism))] for subtask in range(parallelism)
        ]

    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """Raises an error: the source is read epoch by epoch."""
        raise NotImplementedError(f"{parallelism} subtasks asked for splits without positions")

    def read(
        self, split: tuple[int, range], batch_size: int
    ) -> Iterator[Sequence[tuple[int, int]]]:
        """Reads a split: records spread over the keys."""
        begin, numbers = split
        for first in range(0, len(numbers), batch_size):
            yield [
                (number * 7919 % KEYS, begin + number * 1000 // self.rate)
                for number in numbers[first : first + batch_size]
            ]


class Count(AggregateFunction[Any, int, int]):
    """The number of records."""

    def create_accumulator(self) -> int:
        """No records."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """One record more."""
        del value
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """The number of records."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """The sum."""
        return acc_a + acc_b


def run(rate: int, seconds: int) -> list[EpochProgress]:
    """The epochs of `seconds` at a rate, and at least `EPOCHS` of them."""
    epochs: list[EpochProgress] = []
    is_over = threading.Event()

    def listen(progress: EpochProgress) -> None:
        epochs.append(progress)
        so_far_ms = progress.timestamp_ms - epochs[0].timestamp_ms
        if so_far_ms > 1000 * seconds and len(epochs) >= EPOCHS:
            is_over.set()

    with tempfile.TemporaryDirectory() as folder:
        env = environment(execution__checkpointing__dir=folder)
        env.add_epoch_listener(listen)
        timed: Any = WatermarkStrategy.for_monotonous_timestamps()
        timed = timed.with_timestamp_assigner(lambda record, _: record[1])
        records = env.from_source(Steady(rate), timed, "records").key_by(lambda record: record[0])
        counts = records.window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(Count())
        counts.sink_to(DiscardingSink())
        client = env.execute_async("sustained rate")
        while not is_over.wait(0.2):
            if client.get_job_status().result().is_globally_terminal_state():
                client.get_job_execution_result().result()
        client.cancel().result()
    return epochs


def told(rate: int, epochs: list[EpochProgress]) -> dict[str, float | bool]:
    """The statistics of the last third of the epochs, and whether the epochs or the lag still grew."""
    third = len(epochs) // 3
    middle, last = epochs[third:-third], epochs[-third:]
    found: dict[str, float | bool] = {
        "rate": rate,
        "records_per_epoch": statistics.median(epoch.records_in for epoch in last),
        "epoch_ms": _duration_ms(last),
        "longest_epoch_ms": max(epoch.duration_ms for epoch in last),
        "lag_ms": _lag_ms(last),
        "keeps_up": all(of(last) < _GROWS * of(middle) for of in (_duration_ms, _lag_ms)),
    }
    print(
        f"{rate:>10,} records/s: {found['records_per_epoch']:>10,.0f} an epoch of {found['epoch_ms']:>7,.0f} ms "
        f"(at most {found['longest_epoch_ms']:>7,.0f}), watermark {found['lag_ms']:>7,.0f} ms behind, "
        f"{'settled' if found['keeps_up'] else 'growing'}",
        flush=True,
    )
    return found


def _duration_ms(epochs: list[EpochProgress]) -> float:
    return float(statistics.median(epoch.duration_ms for epoch in epochs))


def _lag_ms(epochs: list[EpochProgress]) -> float:
    return float(statistics.median(epoch.watermark_lag_ms or 0 for epoch in epochs))


def main() -> int:
    """Increases the rate until the job cannot keep up."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rates", default="25000,50000,100000,200000,400000,800000,1600000")
    parser.add_argument("--seconds", type=int, default=30, help="shortest duration of each rate")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    spark_session()
    found = []
    for rate in map(int, options.rates.split(",")):
        found.append(told(rate, run(rate, options.seconds)))
        if not found[-1]["keeps_up"]:
            break
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
