"""The release gate on a standalone cluster.

`OPCHAIN_GATE_RUNS=10` sets the number of runs, of which a release needs 10. `OPCHAIN_SEED` is the first seed; seed 1
kills an executor.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_process import run_program

if TYPE_CHECKING:
    from standalone_cluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

GATE = str(Path(__file__).with_name("release_gate.py"))
RUNS = os.environ.get("OPCHAIN_GATE_RUNS", "1")
SEED = os.environ.get("OPCHAIN_SEED", "1")


@pytest.mark.parametrize(
    "what",
    [
        ("--runs", RUNS, "--seed", SEED, "--identical", "6"),
        ("--runs", "0", "--identical", "2", "--speculation"),
    ],
    ids=["kills", "speculation"],
)
def test_no_record_is_lost_repeated_or_reordered_by_kills(
    cluster: StandaloneCluster, what: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--master", cluster.url, "--folder", str(cluster.folder))
    done = run_program(GATE, *what, *place, timeout_s=900)
    with capsys.disabled():
        print(f"\n{done.out}")  # noqa: T201 - the seeds are needed to run it again
    assert done.exit_code == 0, done.out + done.err
    if (
        sys.platform == "linux"
    ):  # elsewhere both workers are on one host, and Spark starts no second copy of a task
        assert " 0 second copies" not in done.out
