"""Processes are killed at any moment of a checkpoint: the output is that of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

from opchain.testing import faults

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("needs_spark")]

JOB = Path(__file__).with_name("killed_job.py")
EPOCHS = 5
DRIVER = ["epoch-begun", "acknowledged", "completed", "between-commits", "committed"]
TASKS = ["before-state", "after-state"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    draw, time = random.Random(5), 0
    for number in range(EPOCHS):
        lines = []
        for value in range(200):
            time += draw.randint(0, 3)
            row = {"key": f"k{draw.randint(0, 9)}", "time": time - draw.randint(0, 40)}
            lines.append(json.dumps({**row, "value": value}) + "\n")
        path = folder / f"{number}.json"
        path.write_text("".join(lines))
        os.utime(path, (1_700_000_000 + 10 * number,) * 2)  # Spark reads the oldest file first
    return folder


def run(source: Path, folder: Path, kills: list[str]) -> faults.SurvivedRun:
    return faults.run_with_kills(
        [sys.executable, str(JOB), str(source), str(folder / "out"), str(folder / "checkpoints")],
        kills,
        environment={
            "PYSPARK_SUBMIT_ARGS": "--master local[2,4] --conf spark.ui.enabled=false pyspark-shell"
        },
        timeout_s=600,
    )


def output(folder: Path) -> dict[str, list[str]]:
    # Files of a killed process are left under hidden names, as in Flink.
    files = [
        path
        for path in (folder / "out").rglob("*")
        if path.is_file() and not path.name.startswith(".")
    ]
    return {
        name: sorted(
            line
            for path in files
            if path.parent.name == name
            for line in path.read_text().splitlines()
        )
        for name in ("counts", "sums")
    }


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(source, folder, []).starts == 1
    found = output(folder)
    assert len(found["counts"]) == 200 * EPOCHS
    return found


@pytest.mark.long  # in test_killed_sinks.py the driver dies at each of these points, too
def test_a_driver_killed_at_any_point_changes_no_output(
    source: Path, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    kills = [f"{point}@{epoch}" for epoch, point in enumerate(DRIVER, 1)]
    survived = run(source, tmp_path, kills)
    assert (survived.starts, set(survived.died)) == (1 + len(kills), set(kills))
    assert output(tmp_path) == undisturbed


def test_killed_workers_are_replaced_by_spark_without_changing_the_output(
    source: Path, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    kills = [f"{point}@{epoch}" for epoch in (1, 3, 4) for point in TASKS]
    survived = run(source, tmp_path, kills)
    assert (survived.starts, set(survived.died)) == (1, set(kills))
    assert output(tmp_path) == undisturbed


@pytest.mark.long
def test_random_kills_of_driver_and_workers_change_no_output(
    source: Path, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    seed = int(os.environ.get("OPCHAIN_SEED", "1"))
    print(f"OPCHAIN_SEED={seed}")  # noqa: T201 - to run it again
    draw = random.Random(seed)
    kills = sorted({f"{draw.choice(DRIVER + TASKS)}@{draw.randint(1, EPOCHS)}" for _ in range(4)})
    assert set(run(source, tmp_path, kills).died) == set(kills)
    assert output(tmp_path) == undisturbed
