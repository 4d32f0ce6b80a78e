"""Compares the time of workloads with their baselines, in alternating rounds of one run.

The speed of a shared machine varies, so absolute times say little. The result is the median of the ratios within each
round, of wall-clock time and of the processor time of all processes. The results of all contenders must be equal.
"""

from __future__ import annotations

import gc
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Baseline:
    """Another way to compute the result of a workload.

    Attributes:
        name: Its name in the table.
        run: Computes and returns the result.
        target: The lowest acceptable ratio, or None.
        is_run_once: Whether it runs in one round only, without a warm-up, because it takes long.
    """

    name: str
    run: Callable[[], Any]
    target: float | None = None
    is_run_once: bool = False


@dataclass(frozen=True)
class Workload:
    """A computation by opchain and by each baseline. All of them return equal results."""

    name: str
    records: int
    run: Callable[[], Any]
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True)
class Comparison:
    """Median seconds, and opchain's throughput divided by the baseline's, by wall-clock and by processor time."""

    workload: str
    baseline: str
    records: int
    ours_s: float
    baseline_s: float
    ratio: float
    cpu_ratio: float
    target: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the ratio reaches its target. A ratio without a target always does."""
        return self.target is None or self.ratio >= self.target


def compare(workload: Workload, rounds: int, progress: Callable[[str], None]) -> list[Comparison]:
    """Runs opchain and all baselines in turn: one round to warm up, then `rounds` measured ones.

    Args:
        workload: The workload.
        rounds: The number of measured rounds.
        progress: Called with a line that says what runs next.

    Raises:
        AssertionError: If the results of two contenders differ.
    """
    contenders = {"ours": workload.run} | {item.name: item.run for item in workload.baselines}
    run_once = {item.name for item in workload.baselines if item.is_run_once}
    results: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name in list(contenders)[:: 1 if number % 2 else -1]:
            if name in run_once and number != 1:
                continue
            progress(f"{workload.name}: round {number} of {rounds}, {name}")
            gc.collect()
            started, cpu_before = time.perf_counter(), _cpu_seconds()
            results[name] = contenders[name]()
            elapsed = time.perf_counter() - started
            if number:
                seconds[name].append(elapsed)
                cpu_seconds[name].append(_cpu_seconds() - cpu_before)
            first = next(iter(results))
            if results[name] != results[first]:
                raise AssertionError(
                    f"{workload.name}: {name} returned {results[name]!r}, but {first} returned {results[first]!r}"
                )
    ours, ours_cpu = seconds["ours"], cpu_seconds["ours"]
    return [
        Comparison(
            workload.name,
            baseline.name,
            workload.records,
            statistics.median(ours),
            statistics.median(seconds[baseline.name]),
            _ratio(ours, seconds[baseline.name]),
            _ratio(ours_cpu, cpu_seconds[baseline.name]),
            baseline.target,
        )
        for baseline in workload.baselines
    ]


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' ratios. A baseline that ran once is compared with the median of `ours`."""
    if len(theirs) == 1:
        return theirs[0] / statistics.median(ours)
    return statistics.median(their / own for own, their in zip(ours, theirs, strict=True))


def _cpu_seconds() -> float:
    """The processor time so far of this process and its children: Spark's JVM and all Python workers, also exited ones."""
    process = psutil.Process()
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(
            psutil.NoSuchProcess
        ):  # the process has exited, and its parent includes its time
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
