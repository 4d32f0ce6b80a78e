"""The five examples in process: their output, their plans, and what their docstrings promise."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from example_outputs import EXAMPLES, GROWING, NAMES, RUNS, Run, by_key

from opchain import RuntimeExecutionMode, StreamExecutionEnvironment
from opchain.compiler.cli import main
from opchain.testing import KeyedOneInputOperatorHarness, assert_plan_matches

GOLDEN = Path(__file__).parent.parent / "golden"
CODE = GOLDEN / "code"


def example(name: str) -> Any:
    return importlib.import_module(f"examples.{name}")


def output(run: Run) -> list[str]:
    done = CliRunner().invoke(main, ["run", "--local", "--quiet", *run.command])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_each_example_prints_its_expected_output(run: Run) -> None:
    assert by_key(output(run)) == by_key(run.lines)


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_of_each_example_equals_its_golden_file(name: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    example(name).build(env)
    assert_plan_matches(env, GOLDEN / f"example_{name}.job-graph")


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("name", NAMES)
def test_the_generated_code_of_each_example_equals_its_golden_file(name: str, mode: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode[mode.upper()])
    example(name).build(env)
    assert_plan_matches(env, CODE / f"{name}.{mode}", stage="generated")


def test_generated_code_passes_the_linter(tmp_path: Path) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    for golden in CODE.iterdir():
        for number, module in enumerate(re.split("(?m)^# vertex .*$", golden.read_text("utf-8"))):
            (tmp_path / f"{golden.name}_{number}.py").write_text(module, "utf-8")
    # F821: names in the text that are bound on executors are undefined for ruff.
    rules = ["--isolated", "--select", "E4,E7,E9,F", "--ignore", "F821"]
    check = [sys.executable, "-m", "ruff", "check", *rules, "."]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_each_example_is_short(name: str) -> None:
    lines = (EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()
    assert 30 <= len(lines) <= 70


@pytest.mark.parametrize("name", [name for name in NAMES if name != "word_count"])
def test_the_docstring_of_each_example_shows_its_output(name: str) -> None:
    lines = [line.strip() for line in example(name).__doc__.splitlines()]
    start = lines.index(f"$ python examples/{name}.py") + 1
    (run,) = [run for run in RUNS if run.name == name and not run.settings and not run.arguments]
    assert lines[start : start + len(run.lines)] == output(run)


def test_the_docstring_of_word_count_shows_lines_of_its_output() -> None:
    shown = [line.strip() for line in (example("word_count").__doc__ or "").splitlines()]
    assert {line for line in shown if line.startswith("(")} == {
        GROWING[0],
        GROWING[3],
        "('be', 1)",
    }


def test_word_count_counts_words_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Rain, rain; go away!\n", "utf-8")
    run = Run("word_count", (), ("--input", str(tmp_path / "text.txt")), ())
    assert output(run) == ["('rain', 1)", "('rain', 2)", "('go', 1)", "('away', 1)"]


def test_dedup_with_ttl_forgets_an_id_after_its_time_to_live() -> None:
    function = example("dedup_with_ttl").FirstOfEachId(60)
    with KeyedOneInputOperatorHarness(function, key_selector=lambda payment: payment[0]) as harness:
        for minutes in (0, 59, 1):
            harness.clock.advance(minutes * 60_000)
            harness.process_element(("p1", 100 + minutes))
        assert harness.values() == [("p1", 100), ("p1", 101)]
