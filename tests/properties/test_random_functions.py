"""Random functions have the same records, order, counters and errors interpreted, generated and inlined.

`OPCHAIN_PROGRAMS` says how many programs there are, `OPCHAIN_SEED` which is the first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from program_texts import module_of, outcomes
from random_functions import random_program

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = int(os.environ.get("OPCHAIN_PROGRAMS", "12"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_random_functions_have_the_same_results_in_each_form(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, names = random_program(seed)
    file = tmp_path / f"random_functions_{seed}.py"
    file.write_text(text)
    for mode, found in outcomes(module_of(file, monkeypatch).draw, names):
        assert found["generated"] == found["interpreted"], mode
        assert found["inlined"] == found["interpreted"], mode
