"""The output of the benchmarks: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from typing_extensions import Self

    from benchmarks.measure import Comparison
    from benchmarks.memory import MemoryUse

_WIDTH = 110


class Progress:
    """A line on the terminal that says what runs. Without a terminal, nothing is printed."""

    def __init__(self) -> None:
        self._status = Console(stderr=True).status("starting Spark")

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._status.stop()

    def tell(self, what: str) -> None:
        """Replaces the line."""
        self._status.update(what)


def show_machine() -> None:
    """Prints the machine and the versions on which the results depend."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("pyspark", "opchain"))
    _console().print(
        f"{platform.machine()}, {cores} cores{load}, Python {platform.python_version()}, {versions}"
    )


def show_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Prints a row for each workload and baseline, and marks ratios below their target."""
    table = _table("workload", "baseline")
    for column in ("records", "ours s", "baseline s", "ratio", "CPU ratio", "target"):
        table.add_column(column, justify="right")
    last = None
    for item in comparisons:
        if last not in (None, item.workload):
            table.add_section()
        target = "" if item.target is None else f"{item.target:.1f}"
        table.add_row(
            "" if item.workload == last else item.workload,
            item.baseline,
            f"{item.records:,}",
            f"{item.ours_s:.2f}",
            f"{item.baseline_s:.2f}",
            f"{item.ratio:.2f}",
            f"{item.cpu_ratio:.2f}",
            target if item.is_met else f"{target} missed",
            style=None if item.is_met else "bold red",
        )
        last = item.workload
    _console().print(table)


def show_memory(uses: Sequence[MemoryUse]) -> None:
    """Prints the peak memory of each run, and its ratio to the first run's."""
    table = _table("workload")
    for column in ("text MB", "worker MB", "ratio"):
        table.add_column(column, justify="right")
    for use in uses:
        table.add_row(
            use.workload,
            f"{use.text_megabytes:,}",
            f"{use.worker_megabytes:,.0f}",
            f"{use.worker_megabytes / uses[0].worker_megabytes:.2f}",
        )
    _console().print(table)


def _table(*columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD if sys.stdout.isatty() else box.ASCII2)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_WIDTH, no_color=True)
