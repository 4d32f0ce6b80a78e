"""Every recorded program has the same results under opchain as under PyFlink 2.3.

record.py records PyFlink's results. docs/reference/pyflink.md gives the reasons for the programs listed here.
"""

from __future__ import annotations

import gzip
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from running import RECORDED, all_cases, run_together

if TYPE_CHECKING:
    from running import Case

CASES = all_cases()
KNOWN: dict[str, Any] = {}
for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
    recorded = json.loads(line)
    KNOWN[recorded["name"]] = recorded

FEWEST = 1100
"""Programs that are recorded at least. The generator makes more: some fail or hang under PyFlink."""
DIFFERENT = json.loads(Path(__file__).with_name("different.json").read_text())
"""Programs whose results differ, by the reason; docs/reference/pyflink.md lists the reasons."""

EXCUSED = {name: reason for reason, names in DIFFERENT.items() for name in names}


def environment(form: str) -> StreamExecutionEnvironment:
    target = "spark" if form == "spark" else "local"
    configuration = Configuration().set_string("execution.target", target)
    if form == "interpreted":
        configuration.set_string("opchain.codegen.enabled", "false")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def agrees(case: Case, form: str) -> str | None:
    """None where a program gives what is recorded, else how it differs."""
    expected = KNOWN[case.name]["records"]
    try:
        found = run_together("opchain", [case], lambda: environment(form))[case.name]
    except Exception as error:  # noqa: BLE001 - a program that PyFlink runs fails
        return f"{type(error).__name__}: {error}"
    return None if found == expected else f"{found} instead of {expected}"


def recorded_cases() -> list[Case]:
    return [
        case
        for case in CASES
        if case.name in KNOWN
        and KNOWN[case.name]["digest"] == case.digest
        and "records" in KNOWN[case.name]
    ]


def test_enough_programs_are_recorded() -> None:
    assert len(recorded_cases()) >= FEWEST
    assert len([case for case in recorded_cases() if case.name.startswith("whole-")]) >= 50


PARTS = [pytest.param(part, marks=[pytest.mark.slow] if part % 10 else []) for part in range(20)]


@pytest.mark.parametrize("part", PARTS)
def test_recorded_programs_have_the_results_of_pyflink(part: int) -> None:
    differing = {
        case.name: how
        for case in recorded_cases()[part::20]
        if case.name not in EXCUSED and (how := agrees(case, "generated")) is not None
    }
    assert differing == {}


@pytest.mark.slow
def test_interpreted_programs_have_the_results_of_pyflink() -> None:
    differing = {
        case.name: how
        for case in recorded_cases()[::20]
        if case.name not in EXCUSED and (how := agrees(case, "interpreted")) is not None
    }
    assert differing == {}


def parts_on_spark() -> list[list[Case]]:
    """All whole programs and every twentieth random one, up to 40 to a job, so that Spark starts few jobs."""
    cases = [case for case in recorded_cases() if case.name not in EXCUSED]
    whole = [case for case in cases if case.name.startswith("whole-")]
    chosen = [*whole, *cases[: -len(whole) : 20]]
    # In batch mode operators run as many subtasks as the environment has, so jobs are of one parallelism.
    chosen.sort(key=lambda case: (case.mode, case.parallelism))
    return [
        alike[start : start + 40]
        for alike in (
            list(found)
            for _, found in groupby(chosen, key=lambda case: (case.mode, case.parallelism))
        )
        for start in range(0, len(alike), 40)
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_programs_on_spark_have_the_results_of_pyflink() -> None:
    differing = {}
    for part in parts_on_spark():
        found = run_together("opchain", part, lambda: environment("spark"))
        for case in part:
            if found[case.name] != KNOWN[case.name]["records"]:
                differing[case.name] = (
                    f"{found[case.name]} instead of {KNOWN[case.name]['records']}"
                )
    assert differing == {}


def test_each_program_with_a_known_difference_still_differs() -> None:
    cases = {case.name: case for case in recorded_cases()}
    assert [
        name for name in EXCUSED if name in cases and agrees(cases[name], "generated") is None
    ] == []
