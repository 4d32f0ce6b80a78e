from __future__ import annotations

import json
import re
from typing import Any

PROGRAM = """
import random
from opchain import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 9).map(lambda value: value + random.random()).print()
env.execute("lots")
"""


def test_lint_prints_line_reason_and_remedy_of_each_finding(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("lint", "clicks.py")
    assert done.exit_code == 1
    first, second, last = done.stdout.splitlines()
    assert first.startswith("clicks.py:6: '<lambda>' of 'Map' (clicks.py:6) calls ")
    assert first.endswith("[not-deterministic]")
    assert second.startswith("    derive the value from the record")
    assert last == "1 found: 1 not-deterministic"


def test_lint_exits_with_0_for_a_program_without_findings(write: Any, run: Any) -> None:
    write()
    done = run("lint", "clicks.py")
    assert (done.exit_code, done.stdout) == (0, "nothing found\n")


def test_lint_can_ignore_a_rule(write: Any, run: Any) -> None:
    write(PROGRAM)
    assert run("lint", "--ignore", "not-deterministic", "clicks.py").exit_code == 0


def test_lint_prints_findings_as_json_and_sarif(write: Any, run: Any) -> None:
    write(PROGRAM)
    (row,) = json.loads(run("lint", "clicks.py", "--format", "json").stdout)
    assert (row["rule"], row["call_site"]) == ("not-deterministic", "clicks.py:6")
    sarif = json.loads(run("lint", "clicks.py", "--format", "sarif").stdout)
    assert len(sarif["runs"][0]["results"]) == 1


KEYED = """
from opchain import StreamExecutionEnvironment, Types

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(4)
numbers = env.from_sequence(1, 9)
numbers.key_by(lambda value: value % 10, Types.LONG()).reduce(max).name("largest").uid("l").print()
"""


def test_lint_reports_skew_in_a_sample_of_keys(write: Any, run: Any) -> None:
    write(KEYED)
    write("\n".join(["7"] * 90 + [str(key) for key in range(10)]), "keys.txt")
    done = run("lint", "clicks.py", "--sample", "keys.txt")
    (line,) = [line for line in done.stderr.splitlines() if "'largest'" in line]
    assert "the busiest has 3." in line
    shares = [
        int(part.partition(": ")[2].partition("%")[0])
        for part in line.split("subtask ")[1].split(";")[0].split(", ")
    ]
    assert len(shares) == 4
    assert max(shares) >= 90
    lines = done.stderr.splitlines()
    keys, groups, advice = lines[lines.index(line) + 1 :][:3]
    found = re.match(r"    hottest keys: 7 91\.0% \(key group (\d+)\), \d 1\.0% ", keys)
    assert found
    assert groups.startswith(f"    hottest key groups: {found[1]} 9")
    assert advice.startswith("    the key 7 alone has more than the share of a subtask")
    write("\n".join(map(str, range(1000))), "keys.txt")
    even = run("lint", "clicks.py", "--sample", "keys.txt")
    assert "the busiest has 1." in even.stderr
    assert "alone has more" not in even.stderr
    write("word\n", "keys.txt")
    assert (
        "the sample does not fit its keys"
        in run("lint", "clicks.py", "--sample", "keys.txt").stderr
    )
