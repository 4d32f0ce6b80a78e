from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_epoch import PROGRESS
from forms import seen
from rich.console import Console

from opchain.common import Types
from opchain.compiler.monitoring.progress import COLUMNS, epoch_line, epoch_table
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochHistory, epoch_progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PHASES = {"waiting": 400.0, "tasks": 1584.6, "checkpoint": 23.5, "commit": 0.3}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {
                "records_in": 1871,
                "records_out": 1000,
                "duration_ms": 1608.4,
                "durations_ms": PHASES,
                "state_bytes": 14213,
                "state_entries": 100,
                "watermark": 1_700_000_021_694,
                "watermark_lag_ms": 75_000,
            },
            (
                "epoch 1 of 'words': records: 1,871 in, 1,000 out, 932 a second; "
                "1.6 s (tasks 1.6 s, checkpoint 24 ms, commit 0 ms); waited 400 ms; "
                "state 13.9 KiB, 100 held; watermark 2023-11-14 22:13:41, 1 min 15 s behind"
            ),
        ),
        # Event time that counts something else, and the end of all input.
        ({"watermark": 99, "watermark_lag_ms": 10**12}, "watermark 99 ms"),
        ({"watermark": "end"}, "watermark end"),
        ({"watermark": None}, "0 held"),
    ],
)
def test_an_epoch_line_has_its_main_numbers_on_one_line(
    changes: dict[str, Any], expected: str
) -> None:
    line = epoch_line(replace(PROGRESS, **changes))
    assert line.endswith(expected)
    assert "\n" not in line


class Count(KeyedProcessFunction[str, str, str]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[str]:
        self.count.update(1)
        yield value


def test_a_table_has_a_row_per_vertex_and_operator(tmp_path: Path) -> None:
    run = EpochRun(
        lambda env: seen(given(env, "words").key_by(str).process(Count()).name("count"), "seen"),
        tmp_path,
        2,
    )
    history = EpochHistory(run.job)
    for number, words in enumerate((["a", "b", "c"], ["a", "d"]), start=1):
        outcome = run.run(words=words).outcome
        progress = epoch_progress(
            run.job,
            outcome,
            Epoch(number, 1000),
            run_id="run",
            batch=number - 1,
            checkpoint="somewhere",
            durations_ms=PHASES,
        )
        history.add(progress, outcome)
    run.close()
    out = io.StringIO()
    Console(file=out, width=120).print(epoch_table(progress, history.totals()))
    title, header, _, *lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert title.strip() == f"{run.job.job_name}  epoch 2"
    assert re.split(r" {2,}", header.strip()) == list(COLUMNS)
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    # Name, tasks, in, in so far, out, busy, watermark; then state.
    source, count = rows[0], next(row for row in rows if row[0] == "count")
    assert source[:5] == ["Source: words", "2", "2", "5", "2"]
    assert count == ["count", "2", "5", "2", "-", "4 held"]
    assert "waited 400 ms" in " ".join(out.getvalue().split())


LEFT = {
    60: {"in", "out", "busy", "watermark"},
    80: {"tasks", "in", "out", "busy", "watermark", "state"},
    200: {"tasks", "in", "in so far", "out", "busy", "watermark", "state"},
}


@pytest.mark.parametrize("width", LEFT)
def test_on_a_narrow_terminal_the_table_drops_columns_before_names(
    tmp_path: Path, width: int
) -> None:
    run = EpochRun(lambda env: seen(given(env, "a name of 26 characters  x"), "seen"), tmp_path)
    outcome = run.run().outcome
    run.close()
    history = EpochHistory(run.job)
    progress = epoch_progress(
        run.job, outcome, Epoch(1, 0), run_id="run", batch=0, checkpoint="", durations_ms=PHASES
    )
    history.add(progress, outcome)
    out = io.StringIO()
    Console(file=out, width=width).print(epoch_table(progress, history.totals()))
    lines = out.getvalue().splitlines()
    header = next(line for line in lines if "vertex, operator" in line)
    row = next(line for line in lines if "Source" in line)
    assert set(re.split(r" {2,}", header.strip())) == {"vertex, operator"} | LEFT[width]
    assert "Source: a name of 26" in row
    assert "%" in row
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("busy", "is_coloured"), [(0.97, True), (0.5, False)])
def test_the_epoch_table_colours_only_unusual_values(
    tmp_path: Path, busy: float, is_coloured: bool
) -> None:
    run = EpochRun(lambda env: seen(given(env, "words"), "seen"), tmp_path)
    outcome = run.run(words=["a"]).outcome
    run.close()
    history = EpochHistory(run.job)
    progress = epoch_progress(
        run.job, outcome, Epoch(1, 0), run_id="run", batch=0, checkpoint="", durations_ms=PHASES
    )
    history.add(progress, outcome)
    vertices = tuple(replace(vertex, busy=busy) for vertex in progress.vertices)
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True, color_system="standard")
    console.print(epoch_table(replace(progress, vertices=vertices), history.totals()))
    assert ("\x1b[33m" in out.getvalue()) is is_coloured
