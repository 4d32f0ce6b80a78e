"""Programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Program:
    """A program that has run in a process of its own."""

    exit_code: int
    out: str
    err: str


def run_program(*command: str, timeout_s: float = 600, **environment: str | None) -> Program:
    """Runs `python COMMAND`; a variable that is None is taken away."""
    variables = os.environ | {"PYTHONPATH": str(TESTS)} | environment
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env={key: value for key, value in variables.items() if value is not None},
    )
    return Program(done.returncode, done.stdout, done.stderr)
