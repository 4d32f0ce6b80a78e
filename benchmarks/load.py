"""Holds an unbounded job under a skewed load with a burst, and shows lag and memory minute by minute.

    python benchmarks/load.py --rate 100000 [--minutes 10] [--json FILE]

90 % of the records have the same key, the others go round 2,000,000 keys. A reduce keeps a count of each key; windows of
a second of event time count them, too. In the third minute ten times the rate arrives for ten seconds. Take 80 % of the
rate at which sustained_rate.py stops keeping up. The lag is that of the watermark behind the time of day.
"""

from __future__ import annotations

import argparse
import json
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
"""One of so many records has another key than the hot one."""

BURST_AT_S, BURST_S, BURST_FACTOR = 120, 10, 10
MOST_SECONDS = 5
"""An epoch reads at most what arrives in so many seconds without a burst."""


class Load(UnboundedSource[tuple[int, int]]):
    """(key, time of arrival in ms); a position is (begin in ms, records since)."""

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def initial_position(self, now_ms: int) -> tuple[int, int]:
        """No record has arrived."""
        return now_ms, 0

    def latest_position(self, start: tuple[int, int], now_ms: int) -> tuple[int, int]:
        """All that has arrived, up to the limit of an epoch."""
        begin, first = start
        return begin, min(self.arrived(now_ms - begin), first + MOST_SECONDS * self.rate)

    def arrived(self, passed_ms: int) -> int:
        """The number of records in so much time."""
        in_burst_ms = min(max(passed_ms - 1000 * BURST_AT_S, 0), 1000 * BURST_S)
        return (passed_ms + (BURST_FACTOR - 1) * in_burst_ms) * self.rate // 1000

    def arrival_ms(self, number: int) -> int:
        """When a record arrives, in milliseconds from the begin."""
        passed_ms = number * 1000 // self.rate
        in_burst_ms = min(max(passed_ms - 1000 * BURST_AT_S, 0), 1000 * BURST_S * BURST_FACTOR)
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
        """None: it is read epoch by epoch."""
        raise NotImplementedError(f"{parallelism} subtasks asked for splits without positions")

    def read(
        self, split: tuple[int, range], batch_size: int
    ) -> Iterator[Sequence[tuple[int, int]]]:
        """Records with their keys."""
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
        """Samples until `is_over`."""
        driver = psutil.Process()
        while not self.is_over.wait(2):
            found = {"driver": driver.memory_info().rss / 1e6}
            for process in driver.children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # a worker has just ended
                    kind = "JVM" if "java" in process.name() else "worker"
                    found[kind] = max(found.get(kind, 0.0), process.memory_info().rss / 1e6)
            self.samples.append((time.time() * 1000, found))


def run(rate: int, minutes: float) -> list[dict[str, float]]:
    """Runs the job; each minute's epochs, lag and memory."""
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
        records = env.from_source(Load(rate), timed, "records")
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
    first_ms = epochs[0].timestamp_ms
    return [
        minute_of(number, first_ms, epochs, memory.samples)
        for number in range(int(minutes))
        if any((epoch.timestamp_ms - first_ms) // 60_000 == number for epoch in epochs)
    ]


def minute_of(
    number: int,
    first_ms: int,
    epochs: list[EpochProgress],
    samples: list[tuple[float, dict[str, float]]],
) -> dict[str, float]:
    """What one minute was like."""
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
    """Holds the load."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rate", type=int, default=100_000, help="records per second")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    options = parser.parse_args()
    spark_session()
    found = run(options.rate, options.minutes)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
