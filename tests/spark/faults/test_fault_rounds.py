"""One round of faults on a standalone cluster; `OPCHAIN_FAULT_ROUNDS=20` runs 20 rounds of each kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_process import run_program

if TYPE_CHECKING:
    from standalone_cluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.long]

SCRIPT = str(Path(__file__).with_name("fault_rounds.py"))
ROUNDS = os.environ.get("OPCHAIN_FAULT_ROUNDS", "1")
SEED = os.environ.get("OPCHAIN_SEED", "1")


@pytest.mark.parametrize("kind", ["processes", "two-drivers"])
def test_output_and_state_are_those_of_an_undisturbed_run(
    cluster: StandaloneCluster, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--master", cluster.url, "--folder", str(cluster.folder))
    done = run_program(
        SCRIPT, "--rounds", ROUNDS, "--seed", SEED, "--only", kind, *place, timeout_s=900
    )
    with capsys.disabled():
        print(f"\n{done.out}")  # noqa: T201 - the seeds are needed to run a round again
    assert done.exit_code == 0, done.err
