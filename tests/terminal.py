"""A simulated terminal whose content tests can read."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class Terminal(io.StringIO):
    """A terminal; `rows` is what it shows of the last drawing."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "")

    def clear(self) -> None:
        self.seek(0)
        self.truncate()


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output and standard error, 80 wide; pytest would take back what a fixture sets."""
    terminal = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return terminal
