"""Planning needs neither Spark nor Java: everything here runs where both cannot be reached."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv.pop(1))
"""

ASSERTIONS = """
from opchain.testing import assert_chained, assert_not_chained, plan_of
from programs import PROGRAMS, drawn
from opchain.compiler.plan.diff import diff_plans
from opchain.compiler.plan.explain import STAGES, explain

for name in PROGRAMS:
    program = drawn(name).program()
    for stage, found in STAGES.items():
        for form in found.printers:
            assert explain(program, stage, form)
assert_chained(drawn("word_count"), "split", "pair")
assert_not_chained(drawn("word_count"), "pair", "count", because="parallelism")
assert not diff_plans(plan_of(drawn("union")), plan_of(drawn("diamond"))).is_empty
"""

COMMAND = """
from opchain.compiler.cli import main
main()
"""

PROGRAM = """
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 9).key_by(lambda n: n % 3).reduce(max).name("highest").print()
env.execute("offline")
"""


def without_spark_and_java(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "SPARK_HOME", "PATH", "PYTHONPATH")
    }
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script, str(TESTS), *map(str, arguments)],
        env=environment | {"PATH": "", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert "pyspark" not in done.stderr, done.stderr
    return done


def test_pyspark_is_blocked_in_these_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + "import pyspark", str(TESTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pyspark is blocked" in done.stderr


def test_planning_and_comparing_programs_needs_no_spark_or_java() -> None:
    done = without_spark_and_java(ASSERTIONS)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "offline.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "{}"),
        ("plan", "{}", "--stage", "execution"),
        ("plan", "{}", "--format", "flink-json"),
        ("explain", "{}"),
        ("diff", "{}", "{}"),
        ("code", "{}"),
        ("key-groups", "a", "1"),
        ("run", "{}", "--local"),
    ],
    ids=" ".join,
)
def test_commands_need_no_spark_or_java(arguments: tuple[str, ...], program: Path) -> None:
    done = without_spark_and_java(COMMAND, *(text.format(program) for text in arguments))
    assert done.returncode == 0, done.stderr
    assert done.stdout
