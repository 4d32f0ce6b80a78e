"""Each source, function, body and reader: the same records, order, timestamps, counters and errors in each form.

`OPCHAIN_PROGRAMS` says how many programs there are, `OPCHAIN_SEED` chooses them.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from typing import TYPE_CHECKING, Any

import pytest
from combined_programs import COMBINATIONS, combined_program
from forms import FORMS, run_form

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
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    for mode in ("STREAMING", "BATCH"):
        found = {form: outcome(module.draw, form, mode) for form in FORMS}
        assert found["generated"] == found["interpreted"], mode
        assert found["inlined"] == found["interpreted"], mode


def outcome(draw: Any, form: str, mode: str) -> Any:
    """What a job gives: records and counters, or the error."""
    try:
        ran = run_form(draw, form, mode=mode, parallelism=2, batch_size=7)
    except Exception as error:  # noqa: BLE001 - some programs fail
        return type(error), str(error)
    return repr(ran.subtasks("results")), ran.counters()
