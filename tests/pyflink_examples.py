"""The example programs of PyFlink, rewritten to import opchain. The repository has no copy of them.

The variable OPCHAIN_PYFLINK_EXAMPLES names the folder `pyflink/examples/datastream` of an unpacked
apache-flink wheel. Only the root of imports is changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

VARIABLE = "OPCHAIN_PYFLINK_EXAMPLES"
_IMPORT = re.compile(r"^(\s*(?:from|import)\s+)pyflink\b", re.MULTILINE)


def examples_folder() -> Path | None:
    """The folder of the examples, or None if the variable is not set or empty."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def rewritten(name: str, into: Path, changes: dict[str, str] | None = None) -> Path:
    """A copy of an example that imports opchain; `changes` are texts that it has, and what they become.

    Raises:
        AssertionError: It imports nothing of PyFlink, or has not what should be changed.
    """
    folder = examples_folder()
    assert folder is not None
    text = (folder / f"{name}.py").read_text("utf-8")
    program, count = _IMPORT.subn(r"\1opchain", text)
    assert count, f"{name} imports nothing of PyFlink"
    for old, new in (changes or {}).items():
        assert old in program, f"{name} has no {old!r}"
        program = program.replace(old, new)
    path = into / Path(name).name
    path = path.with_suffix(".py")
    path.write_text(program, "utf-8")
    return path


def command(program: Path, *arguments: str, local: bool) -> list[str]:
    """The command that runs a program."""
    where = ["--local"] if local else []
    return [sys.executable, "-m", "opchain", "run", *where, str(program), *arguments]


def output_of(program: Path, *arguments: str, local: bool) -> list[str]:
    """The lines that a program prints."""
    done = subprocess.run(
        command(program, *arguments, local=local),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
