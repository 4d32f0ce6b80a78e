from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opchain.compiler.cli import main

PROGRAM = """
import sys
from opchain import StreamExecutionEnvironment

def build(env):
    numbers = env.from_sequence(1, 9).name("numbers")
    numbers.map(abs).name("parse").filter(bool).name("clean").print()

if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    build(environment)
    environment.execute("clicks")
"""

Write = Callable[..., Path]
Run = Callable[..., Result]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program into the working directory, so that messages name it by its file alone."""
    monkeypatch.chdir(tmp_path)

    def program(text: str = PROGRAM, name: str = "clicks.py") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return program


@pytest.fixture
def run() -> Run:
    """Runs `opchain ...` in this process."""

    def command(*arguments: Any) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return command
