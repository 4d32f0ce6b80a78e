"""The last lines of a terminal, which are drawn again and again, and make way for what the program prints."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping

    from rich.live import Live

_SPARKS_BAR = "spark.ui.showConsoleProgress"


class TerminalArea:
    """Draws anything that rich can; nothing of it stays."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._is_mid_line = False

    @property
    def is_drawn(self) -> bool:
        """Whether something is to be seen now."""
        return self._live is not None

    def draw(self, contents: Any) -> None:
        """Puts something in the place of what was there; not while the program is in the midst of a line."""
        with self._lock:
            if self._is_mid_line:
                return
            if self._live is None:
                self._live = _new_live(self._terminal)
            self._live.update(contents)
            if self._live.is_started:
                self._live.refresh()
            else:
                self._live.start(refresh=True)

    def step_aside(self, text: str) -> None:
        """Makes way for text, and waits with the next drawing until its line has ended."""
        with self._lock:
            self.clear()
            if text:
                self._is_mid_line = not text.endswith("\n")

    def clear(self) -> None:
        """Takes what is drawn off the terminal."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None


@contextmanager
def terminal_area() -> Iterator[TerminalArea]:
    """An area on standard error; within the block text to a terminal makes it step aside."""
    area = TerminalArea(sys.stderr)
    _keep_sparks_bar_away(os.environ)
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        if stream.isatty():
            setattr(sys, name, _AboveArea(stream, area))
    try:
        yield area
    finally:
        area.clear()
        for name, stream in streams.items():
            setattr(sys, name, stream)


class _AboveArea:
    """A terminal's stream, before which the area steps aside."""

    def __init__(self, stream: IO[str], area: TerminalArea) -> None:
        self._stream = stream
        self._area = area

    def write(self, text: str) -> int:
        self._area.step_aside(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _keep_sparks_bar_away(environment: MutableMapping[str, str]) -> None:
    """Lets a session that is made from now on draw no bar of its own, unless the user wants one."""
    arguments = environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    if _SPARKS_BAR not in arguments:
        environment["PYSPARK_SUBMIT_ARGS"] = f"--conf {_SPARKS_BAR}=false {arguments}"


def _new_live(terminal: IO[str]) -> Live:
    from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show
    from rich.live import Live  # noqa: PLC0415

    return Live(
        console=Console(file=terminal),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
