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
    assert list(map(int, rows)) == list(range(1, 29))


def test_it_has_a_row_for_each_report_of_other_systems() -> None:
    table = PAGE.partition("## Immunity table")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| ")][1:]
    reports = {report.strip() for row in rows for report in row[1].split(",")}
    spark = ("23243", "38160", "51272", "53575", "24453", "40826")
    flink = ("26403", "25920", "29509", "29512", "29627", "23854", "8086", "23839", "31363")
    wanted = {f"SPARK-{number}" for number in spark} | {f"FLINK-{number}" for number in flink}
    assert reports == wanted | {"iceberg#10892", "paimon#9236"}
    assert all("`test_" in row[4] or "as above" in row[4] for row in rows)
