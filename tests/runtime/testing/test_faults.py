from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.errors import TaskFailedError
from opchain.runtime.testing import faults

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from opchain.runtime.checkpoint.fault_points import reach

done = Path(sys.argv[1])
while (epoch := len(done.read_text()) + 1) < 5:
    reach("acknowledged", epoch)
    done.write_text(done.read_text() + "x")
    reach("completed", epoch)
print("through")
"""


def command(tmp_path: Path, program: str = PROGRAM) -> list[str]:
    (tmp_path / "done").write_text("")
    (tmp_path / "program.py").write_text(program)
    return [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "done")]


def test_a_program_is_started_until_it_succeeds(tmp_path: Path) -> None:
    kills = ["acknowledged@2", "completed@2", "completed@9"]
    survived = faults.run_with_kills(command(tmp_path), kills)
    assert survived == faults.SurvivedRun(3, ("acknowledged@2", "completed@2"), "through\n")


def test_the_error_of_a_program_that_fails_without_a_fault_is_shown(tmp_path: Path) -> None:
    with pytest.raises(
        TaskFailedError, match=r"(?s)start 1 of .* exit code 1: .*ZeroDivisionError"
    ):
        faults.run_with_kills(command(tmp_path, "1 / 0"), [])


def test_a_program_that_never_ends_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "MOST_STARTS", 2)
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(TaskFailedError, match="was started 2 times"):
        faults.run_with_kills(command(tmp_path, dies), [])


def test_an_unknown_fault_point_is_refused_before_the_program_runs() -> None:
    with pytest.raises(ValueError, match=r"^kills has 'here@1'"):
        faults.run_with_kills(["never"], ["here@1"])
