"""Queries of Nexmark on Spark return the results of their definitions, as in process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nexmark_expected import WITH_LATE, expected, expected_with_late
from nexmark_jobs import as_bag, assert_same_rows, crowded, rows_in, run, written

QUERIES = [f"q{number}" for number in range(23) if number != 12]
SIDE_INPUT = {number: f"value {number}" for number in range(0, 10_000, 3)}
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return crowded()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]) -> Path:
    folder = tmp_path_factory.mktemp("nexmark")
    written(events, folder / "events.jsonl")
    lines = [f"{key},{value}\n" for key, value in SIDE_INPUT.items()]
    (folder / "side.csv").write_text("".join(lines))
    return folder


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("mode", "parallelism"), [("STREAMING", 4), ("BATCH", 2)])
@pytest.mark.parametrize("query", QUERIES)
def test_a_nexmark_query_returns_on_spark_the_result_of_its_definition(
    events: list[dict[str, Any]],
    folder: Path,
    tmp_path: Path,
    query: str,
    mode: str,
    parallelism: int,
) -> None:
    options = ["--mode", mode, "--parallelism", str(parallelism)]
    if query == "q13":
        options += ["--side-input", str(folder / "side.csv")]
    rows = run(query, folder / "events.jsonl", tmp_path / "out", *options)
    assert_same_rows(query, rows, expected(query, events, SIDE_INPUT))


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("query", list(WITH_LATE))
def test_late_events_on_spark_are_those_of_the_definition(tmp_path: Path, query: str) -> None:
    events = crowded(800, 25_000, 1)
    path = written(events, tmp_path / "events.jsonl")
    late = tmp_path / "late"
    options = ("--watermark", "every-event", "--late", str(late), "--parallelism", "2")
    rows = run(query, path, tmp_path / "out", *options)
    wanted, dropped = expected_with_late(query, events)
    assert_same_rows(query, rows, wanted)
    assert as_bag([flat(event) for event in rows_in(late)]) == as_bag([flat(e) for e in dropped])


@pytest.mark.usefixtures("needs_spark")
def test_the_command_line_runs_from_a_checkout(
    events: list[dict[str, Any]], folder: Path, tmp_path: Path
) -> None:
    paths = ("--input", str(folder / "events.jsonl"), "--output", str(tmp_path / "out"))
    command = [sys.executable, "-m", "examples.nexmark", "q5", *paths, "--parallelism", "2"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_same_rows("q5", rows_in(tmp_path / "out"), expected("q5", events, {}))


def flat(event: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event's person, auction or bid; no two kinds share a field name."""
    return next(event[kind] for kind in ("person", "auction", "bid") if event[kind] is not None)
