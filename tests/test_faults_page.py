"""docs/faults.md names existing files and tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "faults.md").read_text("utf-8")


def test_files_named_on_the_faults_page_exist() -> None:
    named = set(re.findall(r"(?:tests|benchmarks)/[\w/]+\.py", PAGE))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_tests_named_on_the_faults_page_exist() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+?)(?:\.\.\.|\[[\w.-]+\])?`", PAGE))
    assert len(named) > 20
    assert [name for name in sorted(named) if f"def {name}" not in text] == []


def test_the_faults_page_has_a_section_for_each_scenario() -> None:
    sections = re.findall(r"^### F(\d+): ", PAGE, re.MULTILINE)
    assert sorted(map(int, sections)) == list(range(1, 29))


def test_each_section_of_the_faults_page_names_its_tests() -> None:
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)
    faults = [text for text in sections if re.match(r"[FS]\d+: ", text)]
    assert len(faults) == 28 + 14
    unnamed = [
        text.partition(":")[0]
        for text in faults
        if "- Test" not in text or ("tests/" not in text and "any step" not in text)
    ]
    assert unnamed == []


def test_the_faults_page_has_a_section_for_each_known_bug_of_other_systems() -> None:
    page = PAGE.partition("## Bugs of other systems")[2].partition("\n## ")[0]
    sections = page.split("\n### ")[1:]
    reports = {report for text in sections for report in text.partition("\n")[0].split(", ")}
    spark = ("23243", "38160", "51272", "53575", "24453", "40826", "54290", "56461")
    flink = ("26403", "25920", "29509", "29512", "29627", "23854", "8086", "23839", "31363")
    wanted = {f"SPARK-{number}" for number in spark} | {f"FLINK-{number}" for number in flink}
    assert reports == wanted | {"iceberg#10892", "paimon#9236"}
    for text in sections:
        assert re.search(r"- There: .*- In opchain: .*- Test: .*`test_", text, re.DOTALL), text
