"""Processes are killed at any moment: every sink has each record once, and no staged output is left."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from postgres_server import USER, postgres_server

from opchain.testing import faults

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("needs_spark")]

JOB = Path(__file__).with_name("killed_sinks_job.py")
KILLS = [
    "epoch-begun@1",
    "before-state@2",  # kills a task
    "acknowledged@2",
    "completed@3",
    "after-state@4",  # kills a task
    "between-commits@4",
    "committed@5",
]
EPOCHS = 5


def written_input(folder: Path) -> list[str]:
    """Files that Spark reads in this order, one per epoch; returns all keys."""
    draw, keys = random.Random(7), []
    folder.mkdir()
    for number in range(EPOCHS):
        part = [f"k{draw.randint(0, 9)}" for _ in range(200)]
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps({"key": key}) + "\n" for key in part))
        os.utime(path, (1_700_000_000 + 10 * number,) * 2)
        keys += part
    return keys


def test_every_sink_has_each_record_once_after_kills_at_every_point(tmp_path: Path) -> None:
    keys = written_input(tmp_path / "input")
    expected = sorted((key, n) for key, count in Counter(keys).items() for n in range(1, count + 1))
    with postgres_server() as server:
        server.run(
            "CREATE TABLE seen (key text, n int)",
            "CREATE TABLE counts (key text PRIMARY KEY, n int, changes int DEFAULT 1)",
        )
        survived = faults.run_with_kills(
            [sys.executable, str(JOB), str(tmp_path), f"{server.url}?user={USER}"],
            KILLS,
            environment={
                "PYSPARK_SUBMIT_ARGS": "--master local[2,4] --conf spark.ui.enabled=false pyspark-shell"
            },
            timeout_s=600,
        )
        assert set(survived.died) == set(KILLS)
        assert survived.starts == 1 + sum("-state" not in kill for kill in KILLS)
        assert sorted(server.rows("SELECT key, n FROM seen")) == expected
        assert sorted(server.rows("SELECT key, n, changes FROM counts")) == sorted(
            (key, count, count) for key, count in Counter(keys).items()
        )
        assert server.waiting() == 0
    files = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert [path.name for path in files if path.name.startswith(".")] == []
    lines = sorted(line for path in files for line in path.read_text().splitlines())
    assert lines == sorted(f"{key} {n}" for key, n in expected)
    batches = {path.name: json.loads(path.read_text()) for path in (tmp_path / "folder").iterdir()}
    assert sorted(batches) == [f"{number}.json" for number in range(EPOCHS)]
    assert sorted(tuple(row) for rows in batches.values() for row in rows) == expected
