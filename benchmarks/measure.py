"""Times workloads against their baselines in alternating rounds of one run.

Shared machines drift, so absolute times say little: what counts is the median of the ratios of
neighbouring rounds, and of the processor time of all processes beside that of the clock. Every contender's result is checked against the first one's.
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
    """Another way to the same result.

    Attributes:
        name: What the table calls it.
        run: Gives the result.
        target: The least ratio that is wanted, if there is one.
        is_run_once: It takes so long that one round is enough, and there is none to warm it up.
    """

    name: str
    run: Callable[[], Any]
    target: float | None = None
    is_run_once: bool = False


@dataclass(frozen=True)
class Workload:
    """Something to compute, by us and by each baseline: every `run` gives the same result."""

    name: str
    records: int
    run: Callable[[], Any]
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True)
class Comparison:
    """Medians in seconds, and our throughput over the baseline's: by the clock, and by processor time."""

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
        """Whether the ratio reaches its target; a ratio without one is information."""
        return self.target is None or self.ratio >= self.target


def compare(workload: Workload, rounds: int, progress: Callable[[str], None]) -> list[Comparison]:
    """Runs ours and all baselines in turn: one round to warm up, then the counted ones.

    Args:
        workload: What is compared.
        rounds: How many rounds count.
        progress: Told what runs next.

    Raises:
        AssertionError: If a contender's result is another one's not.
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
                    f"{workload.name}: {name} gives {results[name]!r}, {first} gave {results[first]!r}"
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
    """The median over the rounds; what ran once is compared with our median."""
    if len(theirs) == 1:
        return theirs[0] / statistics.median(ours)
    return statistics.median(their / own for own, their in zip(ours, theirs, strict=True))


def _cpu_seconds() -> float:
    """The processor time so far of this process, Spark's JVM and all Python workers, ended ones included."""
    process = psutil.Process()
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # its parent has its time
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
