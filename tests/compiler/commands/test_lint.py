from __future__ import annotations

import json
from typing import Any

PROGRAM = """
import random
from opchain import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 9).map(lambda value: value + random.random()).print()
env.execute("lots")
"""


def test_findings_have_line_reason_and_remedy(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("lint", "clicks.py")
    assert done.exit_code == 1
    first, second, last = done.stdout.splitlines()
    assert first.startswith("clicks.py:6: '<lambda>' of 'Map' (clicks.py:6) calls ")
    assert first.endswith("[not-deterministic]")
    assert second.startswith("    derive the value from the record")
    assert last == "1 found: 1 not-deterministic"


def test_a_clean_program_ends_with_0(write: Any, run: Any) -> None:
    write()
    done = run("lint", "clicks.py")
    assert (done.exit_code, done.stdout) == (0, "nothing found\n")


def test_a_rule_can_be_ignored(write: Any, run: Any) -> None:
    write(PROGRAM)
    assert run("lint", "--ignore", "not-deterministic", "clicks.py").exit_code == 0


def test_findings_as_json_and_sarif(write: Any, run: Any) -> None:
    write(PROGRAM)
    (row,) = json.loads(run("lint", "clicks.py", "--format", "json").stdout)
    assert (row["rule"], row["call_site"]) == ("not-deterministic", "clicks.py:6")
    sarif = json.loads(run("lint", "clicks.py", "--format", "sarif").stdout)
    assert len(sarif["runs"][0]["results"]) == 1
