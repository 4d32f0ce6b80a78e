"""Each source, function, body and reader: the same records, order, timestamps, counters and errors in each form.

`OPCHAIN_PROGRAMS` says how many programs there are, `OPCHAIN_SEED` chooses them.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from combined_programs import COMBINATIONS, combined_program
from program_texts import module_of, outcomes

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = int(os.environ.get("OPCHAIN_PROGRAMS", "30"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))
CHOSEN = random.Random(SEED).sample(COMBINATIONS, PROGRAMS)


@pytest.mark.parametrize("names", CHOSEN, ids=" - ".join)
def test_combined_programs_have_the_same_results_in_each_form(
    names: tuple[str, str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "combined_program.py"
    file.write_text(combined_program(*names))
    for mode, found in outcomes(module_of(file, monkeypatch).draw, ["results"]):
        assert found["generated"] == found["interpreted"], mode
        assert found["inlined"] == found["interpreted"], mode
