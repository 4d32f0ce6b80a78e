"""What an editor and mypy --strict make of programs: the cases in typing_cases.py."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import opchain

CASES = Path(__file__).with_name("typing_cases.py")
ERROR = re.compile(r"typing_cases\.py:(\d+): error: .*\[([\w-]+)\]$")
EXPECTED = re.compile(r"#\s*error: ([\w, -]+)$")


@pytest.fixture(scope="module")
def import_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package alone."""
    root = tmp_path_factory.mktemp("import_root")
    (root / "opchain").symlink_to(Path(opchain.__path__[0]))
    return root


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_programs_are_typed_and_mistakes_found(import_root: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"),
            *("--config-file", "/dev/null"),
            *("--cache-dir", str(tmp_path / "cache"), str(CASES)),
        ],
        check=False,
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(import_root), "PATH": ""},
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[int, set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        matched = ERROR.search(line)
        if matched:
            found[int(matched[1])].add(matched[2])
    lines = enumerate(CASES.read_text().splitlines(), start=1)
    expected = {
        number: set(matched[1].split(", "))
        for number, line in lines
        if (matched := EXPECTED.search(line))
    }
    assert dict(found) == expected, run.stdout
    assert len(expected) == 10
