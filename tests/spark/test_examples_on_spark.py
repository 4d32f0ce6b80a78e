"""The five examples on Spark print what they print in process."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from example_outputs import RUNS, Run, by_key

from opchain.compiler.cli import main

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_an_example_prints_on_spark_what_it_prints_in_process(run: Run) -> None:
    done = CliRunner().invoke(main, ["run", *run.command])
    assert done.exit_code == 0, done.output
    assert by_key(done.stdout.splitlines()) == by_key(run.lines)
    assert " ran for " in done.stderr
