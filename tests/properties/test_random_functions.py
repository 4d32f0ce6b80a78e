"""Random functions have the same records, order, counters and errors interpreted, generated and inlined.

`OPCHAIN_PROGRAMS` says how many programs there are, `OPCHAIN_SEED` which is the first.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form
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
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    for mode in ("STREAMING", "BATCH"):
        found = {form: outcome(module.draw, names, form, mode) for form in FORMS}
        assert found["generated"] == found["interpreted"], mode
        assert found["inlined"] == found["interpreted"], mode


def outcome(draw: Any, names: list[str], form: str, mode: str) -> Any:
    """What a job gives: records and counters, or the error."""
    try:
        ran = run_form(draw, form, mode=mode, parallelism=2, batch_size=7)
    except Exception as error:  # noqa: BLE001 - the functions raise what they like
        return type(error), str(error)
    return {name: repr(ran.subtasks(name)) for name in names}, ran.counters()
