"""The error of a failed unbounded job contains a command that runs the failed epoch again, without Spark."""

from __future__ import annotations

import runpy
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from opchain.compiler.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

PROGRAM = """
import sys
from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource

folder, bad = sys.argv[1], int(sys.argv[2])


def checked(number):
    if number == bad:
        raise ValueError(f"{number} is bad")
    return number % 7, number


configuration = Configuration()
configuration.set_string("execution.checkpointing.dir", f"{folder}/checkpoints")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
numbers = DataGeneratorSource(lambda n: n, records_per_second=100)
stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
pairs = stream.map(checked).uid("checked")
pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums").print()
env.execute("fails")
"""


def replayed(command: str) -> tuple[int, str, str]:
    program, *arguments = shlex.split(command)
    assert program == "opchain"
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_in_the_error_runs_the_failed_epoch_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(sys, "argv", [str(program), str(tmp_path), "400"])
    with pytest.raises(ValueError, match="400 is bad") as caught:
        runpy.run_path(str(program), run_name="__main__")
    (note,) = (note for note in caught.value.__notes__ if "opchain replay" in note)
    command = note.removeprefix("to run this epoch here, without Spark: ")
    published = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    exit_code, _, error = replayed(command)
    assert exit_code == 1
    assert "ValueError: 400 is bad" in error
    assert "job.py" in error
    # The fixed program: the same input, and no failure.
    exit_code, out, error = replayed(command.removesuffix("400") + "-1")
    assert (exit_code, error) == (0, "")
    assert "ends without a failure here" in out
    assert int(out.split(": ")[1].split(" ")[0].replace(",", "")) > 0
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == published


def test_an_epoch_that_never_began_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "job.py"
    once = 'configuration.set_string("opchain.streaming.trigger", "available-now")\nenv ='
    program.write_text(PROGRAM.replace("env =", once, 1))
    monkeypatch.setattr(sys, "argv", [str(program), str(tmp_path), "-1"])
    runpy.run_path(str(program), run_name="__main__")
    checkpoints = tmp_path / "checkpoints"
    last = max(int(path.name[4:]) for path in checkpoints.glob("chk-*") if path.name[4:].isdigit())
    words = ["opchain", "replay", "--epoch", str(last + 1), str(checkpoints), *sys.argv]
    exit_code, _, error = replayed(shlex.join(words))
    assert exit_code == 2
    assert f"no epoch was begun after checkpoint {last}, so there is none to replay" in error
