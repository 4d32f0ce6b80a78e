"""Spin searches the model of checkpoints: it finds the defect of the protocol without fences, and none in the present one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[1] / "docs" / "model" / "checkpoints.pml"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("spin") is None or shutil.which("gcc") is None,
        reason="needs spin and gcc (apt-get install spin gcc)",
    ),
]


def searched(folder: Path, *defines: str) -> tuple[int, int, str]:
    """How many errors there are in how many states, and what Spin says."""
    for command in (
        ["spin", "-a", *(f"-D{define}" for define in defines), str(MODEL)],
        ["gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-o", "pan", "pan.c"],
        ["./pan", "-m1000000"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    errors = re.search(r"errors: (\d+)", done.stdout)
    states = re.search(r"(\d+) states, stored", done.stdout)
    assert errors is not None, done.stdout
    assert states is not None, done.stdout
    assert "max search depth too small" not in done.stdout
    return int(errors[1]), int(states[1]), done.stdout


def test_without_fences_the_model_finds_a_late_driver_that_publishes(tmp_path: Path) -> None:
    errors, _, said = searched(tmp_path, "DRIVERS=2", "EPOCHS=2", "UNFENCED")
    assert errors == 1
    assert re.search(r"assertion violated\s+!?\(?\(?(swept|published)\[", said)


@pytest.mark.parametrize(
    ("more", "least"), [((), 500_000), (("FALLBACK",), 1_000_000)], ids=["damage-free", "fall-back"]
)
def test_in_no_order_of_steps_the_model_loses_or_doubles_output(
    tmp_path: Path, more: tuple[str, ...], least: int
) -> None:
    errors, states, said = searched(tmp_path, "DRIVERS=2", "EPOCHS=2", *more)
    assert errors == 0, said
    assert states > least  # the search went through the whole model
