"""The progress of a job in the cell of a notebook that executes it."""

from __future__ import annotations

import html
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opchain.compiler.commands.epoch_table import epoch_line, rate_text, running_line
from opchain.compiler.commands.progress import Rates, watched
from opchain.compiler.interception import watching_jobs
from opchain.runtime.errors import imported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.epochs.epoch_history import EpochHistory
    from opchain.runtime.job.progress import StageProgress
    from opchain.runtime.measurements.task_metrics import TaskMetrics


def is_in_notebook() -> bool:
    """Whether this program runs in the kernel of a notebook, which shows HTML."""
    shell: Any = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def progress_in_cell() -> Iterator[None]:
    """Within the block the cell shows how far the job is that is started in it."""
    with watching_jobs() as jobs, watched(jobs, CellDisplay()):
        yield


class CellDisplay:
    """One output of a cell, which is replaced as the job runs, and is empty at its end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = ""
        self._rates = Rates()

    def begin(self, job: str) -> None:
        """What begins is part of what is shown."""

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """A line with a bar for each stage."""
        self._rates.take(stages)
        rows = []
        for number, stage in enumerate(stages):
            rate = self._rates.of(number) if stage.running else None
            told = f"{stage.records:,} records" + ("" if rate is None else f", {rate_text(rate)}")
            rows.append(
                f'<tr><td style="text-align: left">{html.escape(stage.name)}</td>'
                f'<td><progress max="{stage.tasks}" value="{stage.done}"></progress></td>'
                f"<td>{stage.done}/{stage.tasks} tasks</td><td>{told}</td></tr>"
            )
        self._put(f"<b>{html.escape(job)}</b><table>{''.join(rows)}</table>")

    def show_epochs(self, history: EpochHistory, running: Mapping[int, TaskMetrics]) -> None:
        """The last epoch, and how far the one is that runs."""
        last = history.last
        lines = [None if last is None else epoch_line(last), running_line(running)]
        self._put("".join(f"<div>{html.escape(line)}</div>" for line in lines if line))

    def clear(self) -> None:
        """Empties the output."""
        if self._handle is not None:
            self._put("")

    def _put(self, text: str) -> None:
        if text == self._shown:
            return
        shell = imported("IPython.display", "notebook", "progress in a cell")
        self._shown = text
        if self._handle is None:
            self._handle = shell.display(shell.HTML(text), display_id=True)
        else:
            self._handle.update(shell.HTML(text))
