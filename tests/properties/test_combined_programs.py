"""Combined programs: the same records, order, timestamps, counters and errors in each form, and after restarts.

A restart changes the state backend; the backend on disk keeps two entries in memory.

`OPCHAIN_PROGRAMS` says how many programs there are, `OPCHAIN_SEED` which is the first.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from combined_programs import combined_program
from epoch_runs import EpochRun
from program_texts import module_of, outcomes

from opchain.runtime.state.disk import disk_entries

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow")

PROGRAMS = int(os.environ.get("OPCHAIN_PROGRAMS", "20"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))
SEEDS = range(SEED, SEED + PROGRAMS)

YEAR_MS = 365 * 86_400_000
EPOCHS: list[list[int]] = [[0, 1, 2, 3], [4, 5, 6], [], [7, 8, 9]]
"""When the numbers of `env.from_sequence(0, 9)` arrive. The epochs are a year apart."""


@pytest.mark.parametrize("seed", SEEDS)
def test_combined_programs_have_the_same_results_in_each_form(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, text = combined_program(seed)
    file = tmp_path / "combined_program.py"
    file.write_text(text)
    draw = module_of(file, monkeypatch).draw
    for mode, found in outcomes(draw, ["results"], parallelism=seed % 3 + 1):
        assert found["generated"] == found["interpreted"], (mode, names)
        assert found["inlined"] == found["interpreted"], (mode, names)


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_combined_programs_that_restart_have_the_results_of_a_run_without_restarts(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, text = combined_program(seed)
    if "self.seen += 1" in text:
        pytest.skip("checkpoints do not have attributes of functions")
    file = tmp_path / "combined_program.py"
    file.write_text(text.replace("env.from_sequence(0, 9)", "given(env, 'numbers')"))
    draw = module_of(file, monkeypatch).draw
    monkeypatch.setattr(disk_entries, "_CACHE_ENTRIES", 2)
    backends = ["hashmap", "rocksdb" if find_spec("rocksdict") else "hashmap"]

    def results(form: str, *, restarts: bool) -> Any:
        settings: dict[str, Any] = {"max_parallelism": 8, "batch_size": 3}
        run = EpochRun(draw, tmp_path / form, seed % 3 + 1, form, settings=settings)
        found: list[Any] = []
        try:
            for number, numbers in enumerate(EPOCHS):
                if number and restarts:
                    settings["state_backend"] = backends[(seed + number) % 2]
                    run = run.restarted()
                ran = run.run(number * YEAR_MS, drains=numbers is EPOCHS[-1], numbers=numbers)
                found.append((repr(ran.subtasks("results")), ran.counters()))
        except Exception as error:  # noqa: BLE001 - the functions raise what they like
            found.append((type(error), str(error)))
        finally:
            run.close()
        return found

    assert results("inlined", restarts=True) == results("interpreted", restarts=False), names
