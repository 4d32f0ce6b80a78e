"""Runs an unbounded job under a skewed load with a burst, and prints lag and memory for each minute.

    python benchmarks/load.py [--rate 100000] [--minutes 10] [--json FILE]

90 % of the records have the same key. The others are spread over 2,000,000 keys. A reduce and event-time windows of one
second count the records of each key. Without `--rate` the job first reads a backlog for a minute, to measure its
saturated rate. The test then uses 80 % of that rate. After a fifth of the time, ten times the rate arrives for ten
seconds. At 80 % of saturation the job needs six minutes to recover. The lag is the difference between the wall clock
and the watermark.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.path[0] = str(ROOT)

from benchmarks.environment import environment, spark_session
from benchmarks.sustained_rate import Count
from opchain.common import WatermarkStrategy
from opchain.common.time import Time
from opchain.datastream.connectors import DiscardingSink
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.unbounded_source import UnboundedSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.epochs.epoch_progress import EpochProgress

KEYS = 2_000_000
HOT = 10
"""One record in `HOT` has a different key than the hot one."""

BURST_S, BURST_FACTOR = 10, 10
MOST_SECONDS = 5
"""An epoch reads at most as many records as arrive in `MOST_SECONDS` without a burst."""

BACKLOG_RATE, BACKLOG_S, BACKLOG_EPOCH, BACKLOG_MINUTES = 100_000, 3600, 250_000, 1.0
"""The backlog for the saturated rate: `BACKLOG_S` seconds of records, of which an epoch reads `BACKLOG_EPOCH`."""
SHARE = 0.8
"""The rate of the test, as a share of the saturated rate."""

RECOVERED = 1.5
"""The lag has recovered when it is at most `RECOVERED` times its median before the burst."""


class Load(UnboundedSource[tuple[int, int]]):
    """Records are (key, time of arrival in ms). A position is (start in ms, number of records since).

    Args:
        rate: Records per second.
        most: The most records of an epoch.
        burst_at_s: Seconds from the start to the burst.
        backlog_s: Seconds from the arrival of the first record to the start.
    """

    def __init__(self, rate: int, most: int, burst_at_s: float, backlog_s: int = 0) -> None:
        self.rate, self.most = rate, most
        self.burst_at_ms, self.backlog_ms = int(1000 * burst_at_s), 1000 * backlog_s

    def initial_position(self, now_ms: int) -> tuple[int, int]:
        """The position before the first record."""
        return now_ms - self.backlog_ms, 0

    def latest_position(self, start: tuple[int, int], now_ms: int) -> tuple[int, int]:
        """The position after all records that have arrived, up to the limit of an epoch."""
        begin, first = start
        return begin, min(self.arrived(now_ms - begin), first + self.most)

    def arrived(self, passed_ms: int) -> int:
        """The number of records that arrive in `passed_ms` milliseconds."""
        in_burst_ms = min(max(passed_ms - self.burst_at_ms, 0), 1000 * BURST_S)
        return (passed_ms + (BURST_FACTOR - 1) * in_burst_ms) * self.rate // 1000

    def arrival_ms(self, number: int) -> int:
        """The arrival time of a record, in milliseconds from the start."""
        passed_ms = number * 1000 // self.rate
        in_burst_ms = min(max(passed_ms - self.burst_at_ms, 0), 1000 * BURST_S * BURST_FACTOR)
        return passed_ms - in_burst_ms * (BURST_FACTOR - 1) // BURST_FACTOR

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
        """Reads the records of a split."""
        begin, numbers = split
        arrival_ms = self.arrival_ms
        for first in range(0, len(numbers), batch_size):
            yield [
                (0 if number % HOT else 1 + number // HOT % KEYS, begin + arrival_ms(number))
                for number in numbers[first : first + batch_size]
            ]


class Memory(threading.Thread):
    """Samples the memory of the driver, its JVM, and the largest Python worker every two seconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        """Samples until `is_over` is set."""
        driver = psutil.Process()
        while not self.is_over.wait(2):
            found = {"driver": driver.memory_info().rss / 1e6}
            for process in driver.children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # a worker has just ended
                    kind = "JVM" if "java" in process.name() else "worker"
                    found[kind] = max(found.get(kind, 0.0), process.memory_info().rss / 1e6)
            self.samples.append((time.time() * 1000, found))


def run(
    load: Load, minutes: float
) -> tuple[list[EpochProgress], list[tuple[float, dict[str, float]]]]:
    """Runs the job. Returns its epochs and samples of its memory."""
    epochs: list[EpochProgress] = []
    is_over = threading.Event()

    def listen(progress: EpochProgress) -> None:
        epochs.append(progress)
        if progress.timestamp_ms - epochs[0].timestamp_ms > 60_000 * minutes:
            is_over.set()

    memory = Memory()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(execution__checkpointing__dir=folder)
        env.add_epoch_listener(listen)
        timed: Any = WatermarkStrategy.for_monotonous_timestamps()
        timed = timed.with_timestamp_assigner(lambda record, _: record[1])
        records = env.from_source(load, timed, "records")
        totals = records.map(lambda record: (record[0], 1)).key_by(lambda pair: pair[0])
        totals.reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(DiscardingSink())
        keyed = records.key_by(lambda record: record[0])
        windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(Count())
        windows.sink_to(DiscardingSink())
        memory.start()
        client = env.execute_async("load")
        while not is_over.wait(0.5):
            if client.get_job_status().result().is_globally_terminal_state():
                client.get_job_execution_result().result()
        client.cancel().result()
    memory.is_over.set()
    memory.join()
    return epochs, memory.samples


def saturated_rate() -> float:
    """Measures how many records per second the job reads from a backlog, in the second half of the time."""
    epochs, _ = run(Load(BACKLOG_RATE, BACKLOG_EPOCH, 2 * BACKLOG_S, BACKLOG_S), BACKLOG_MINUTES)
    half = epochs[len(epochs) // 2 :]
    passed_ms = half[-1].timestamp_ms - half[0].timestamp_ms
    rate = sum(epoch.records_in for epoch in half[1:]) * 1000 / passed_ms
    print(f"saturated at {rate:,.0f} records/s", flush=True)
    return rate


def recovered_s(epochs: list[EpochProgress], burst_at_s: float) -> float | None:
    """Seconds from the burst until the lag recovered, or None if it did not."""
    first_ms = epochs[0].timestamp_ms
    end_ms = first_ms + 1000 * (burst_at_s + BURST_S)
    before = [
        epoch.watermark_lag_ms or 0
        for epoch in epochs
        if epoch.timestamp_ms < end_ms - 1000 * BURST_S
    ]
    usual_ms = statistics.median(before[len(before) // 2 :])
    for epoch in epochs:
        if epoch.timestamp_ms > end_ms and (epoch.watermark_lag_ms or 0) <= RECOVERED * usual_ms:
            return float((epoch.timestamp_ms - end_ms) / 1000)
    return None


def minute_of(
    number: int,
    first_ms: int,
    epochs: list[EpochProgress],
    samples: list[tuple[float, dict[str, float]]],
) -> dict[str, float]:
    """The statistics of one minute."""
    own = [epoch for epoch in epochs if (epoch.timestamp_ms - first_ms) // 60_000 == number]
    lags = [epoch.watermark_lag_ms or 0 for epoch in own]
    found: dict[str, float] = {
        "minute": number + 1,
        "epochs": len(own),
        "records_per_second": sum(epoch.records_in for epoch in own) / 60,
        "epoch_ms": statistics.median(epoch.duration_ms for epoch in own),
        "lag_ms": statistics.median(lags),
        "longest_lag_ms": max(lags),
        "last_lag_ms": lags[-1],
    }
    within = [sizes for moment, sizes in samples if (moment - first_ms) // 60_000 == number]
    for kind in ("driver", "JVM", "worker"):
        sizes = [sample[kind] for sample in within if kind in sample]
        if sizes:
            found[f"{kind}_mb"] = statistics.median(sizes)
    print(
        f"minute {number + 1:>2}: {found['records_per_second']:>9,.0f} records/s, epochs of {found['epoch_ms']:>6,.0f} ms, "
        f"lag {found['lag_ms']:>7,.0f} ms (at most {found['longest_lag_ms']:>7,.0f}), MB: "
        + ", ".join(
            f"{kind} {found.get(kind + '_mb', 0):,.0f}" for kind in ("driver", "JVM", "worker")
        ),
        flush=True,
    )
    return found


def main() -> int:
    """Runs the load test."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--rate", type=int, help="records per second (default: 80 %% of saturation)"
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    spark_session()
    rate = options.rate or int(SHARE * saturated_rate())
    burst_at_s = 60 * options.minutes / 5
    epochs, samples = run(Load(rate, MOST_SECONDS * rate, burst_at_s), options.minutes)
    first_ms = epochs[0].timestamp_ms
    minutes = [
        minute_of(number, first_ms, epochs, samples)
        for number in range(math.ceil(options.minutes))
        if any((epoch.timestamp_ms - first_ms) // 60_000 == number for epoch in epochs)
    ]
    recovered = recovered_s(epochs, burst_at_s)
    print(
        f"{rate:,} records/s; after the burst the lag "
        + (
            "did not recover in this time"
            if recovered is None
            else f"recovered in {recovered:.0f} s"
        )
    )
    if options.json is not None:
        found = {"rate": rate, "recovered_s": recovered, "minutes": minutes}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
