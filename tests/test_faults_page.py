"""docs/faults.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "faults.md").read_text("utf-8")


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"(?:tests|benchmarks)/[\w/]+\.py", PAGE))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_the_tests_that_it_names_are_there() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+?)(?:\.\.\.|\[[\w.-]+\])?`", PAGE))
    assert len(named) > 20
    assert [name for name in sorted(named) if f"def {name}" not in text] == []


def test_it_has_a_row_for_each_scenario() -> None:
    rows = re.findall(r"^\| F(\d+) \|", PAGE, re.MULTILINE)
    assert list(map(int, rows)) == list(range(1, 28))
