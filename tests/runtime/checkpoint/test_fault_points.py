from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.fault_points import (
    FOLDER_VARIABLE,
    POINTS,
    VARIABLE,
    reach,
    read_faults,
)

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from opchain.runtime.checkpoint.fault_points import reach
for epoch in (1, 2, 3):
    reach("completed", epoch)
    print(epoch, flush=True)
"""


def run(faults: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, VARIABLE: faults}
    if folder is not None:
        variables[FOLDER_VARIABLE] = str(folder)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=False
    )


def test_a_process_dies_at_the_fault_point_it_is_given() -> None:
    ended = run("completed@2")
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "1\n")


def test_each_fault_happens_once_if_a_folder_records_it(tmp_path: Path) -> None:
    faults = "completed@2, completed@3"
    assert run(faults, tmp_path).stdout == "1\n"
    assert run(faults, tmp_path).stdout == "1\n2\n"
    ended = run(faults, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "1\n2\n3\n")


def test_no_fault_happens_without_the_environment_variable() -> None:
    for point in POINTS:
        reach(point, 1)


@pytest.mark.parametrize("text", ["nowhere@1", "completed", "completed@", "completed@x"])
def test_an_impossible_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{VARIABLE} has '{text}'.*point@epoch.*completed"):
        read_faults(text)


def test_several_faults_are_parsed() -> None:
    assert read_faults("completed@1, ,acknowledged@20") == {"completed@1", "acknowledged@20"}
    assert read_faults("") == frozenset()
