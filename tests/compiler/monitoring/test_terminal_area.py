from __future__ import annotations

import io
import os
import sys

import pytest
from rich.text import Text
from terminal import terminal_of

from opchain.compiler.monitoring.progress import terminal_area


def test_only_output_of_the_program_stays_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with terminal_area() as area:
        area.draw("two rows")
        assert terminal.shown().splitlines() == ["two rows"]
        assert area.is_drawn
        terminal.clear()
        sys.stdout.write("a line of the program\n")
        assert terminal.shown().splitlines()[-1] == "a line of the program"
        terminal.clear()
        assert not area.is_drawn
        area.draw("two rows")
        assert terminal.shown().splitlines() == ["two rows"]
    assert sys.stdout is terminal


def test_rows_are_drawn_only_after_a_complete_line_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = terminal_of(monkeypatch)
    with terminal_area() as area:
        sys.stdout.write("half a line")
        area.draw("rows")
        assert terminal.shown() == "half a line"
        sys.stdout.writelines([" and", " the rest\n"])
        area.draw("rows")
        assert terminal.shown().splitlines() == ["half a line and the rest", "rows"]


def test_a_stdout_that_is_a_pipe_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_of(monkeypatch)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with terminal_area():
        assert sys.stdout is pipe


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pyspark-shell", "--conf spark.ui.showConsoleProgress=false pyspark-shell"),
        (
            "--conf spark.ui.showConsoleProgress=true pyspark-shell",
            "--conf spark.ui.showConsoleProgress=true pyspark-shell",
        ),
    ],
)
def test_sparks_progress_bar_is_off_unless_it_is_set(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    terminal_of(monkeypatch)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", before)
    with terminal_area():
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == after


def test_the_echo_of_ctrl_c_is_on_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal writes ^C where the cursor is. After a line as wide as the terminal it would begin another row."""
    terminal = terminal_of(monkeypatch)
    with terminal_area() as area:
        area.draw(Text("x" * 80, justify="left"))
        assert terminal.shown() == "x" * 80 + "\n"
