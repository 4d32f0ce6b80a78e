"""Measures the peak memory of a Python worker for texts of two sizes. It must not grow with the input.

Each run has its own process and session, because Spark reuses workers and the peak of a process never falls. After
the job, two tasks read the peak of the workers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import PARALLELISM, spark_session
from benchmarks.workloads import w4_word_count
from benchmarks.zipf_text import zipf_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SIZES_MB = (100, 1000)
MODES = ("BATCH", "STREAMING")


@dataclass(frozen=True)
class MemoryUse:
    """The peak of the largest worker of one run, in MB (10**6 bytes)."""

    workload: str
    text_megabytes: int
    worker_megabytes: float


def measure_memory() -> list[list[MemoryUse]]:
    """Counts words in both modes, in texts of each size."""
    return [[_measured(mode, size) for size in SIZES_MB] for mode in MODES]


def _measured(mode: str, megabytes: int) -> MemoryUse:
    command = [sys.executable, "-m", "benchmarks.memory", mode, str(megabytes)]
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    ).stdout
    return MemoryUse(f"W4 {mode}", megabytes, json.loads(output.splitlines()[-1]) / 1e6)


def _peak_of_one_run(mode: str, megabytes: int) -> int:
    paths = zipf_texts(megabytes)
    session = spark_session()
    w4_word_count.run(paths, mode)
    # Each task occupies one worker, so two tasks at the same time reach both workers.
    tasks = session.sparkContext.parallelize(range(PARALLELISM), PARALLELISM)
    peaks = tasks.mapPartitions(_own_peak).collect()
    session.stop()
    return max(peaks)


def _own_peak(_: Iterable[Any]) -> Iterator[int]:
    import resource  # noqa: PLC0415 - not on Windows

    kilo = 1 if sys.platform == "darwin" else 1024
    yield resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilo


if __name__ == "__main__":
    print(_peak_of_one_run(sys.argv[1], int(sys.argv[2])))
