"""A file with one line of JSON per epoch: what EpochProgress says, for dashboards and for looking back.

A run appends to what is there. A line is written whole once its epoch is over; one that a killed process
has left half written is passed over by `read_progress_log`, and the next run begins a new one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.epochs.epoch_progress import EpochProgress

if TYPE_CHECKING:
    from collections.abc import Iterator


class ProgressLog:
    """Appends epochs to a file; an EpochListener. A path that does not exist is made, with its folders.

    Raises:
        OSError: The file can't be written; from the constructor, before a job begins.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def __call__(self, progress: EpochProgress) -> None:
        """Writes a line."""
        line = json.dumps(progress.as_dict(), separators=(",", ":"), allow_nan=False)
        # Opened each time, so that the file may be moved away while the job runs.
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")


def read_progress_log(path: str | Path) -> Iterator[EpochProgress]:
    """The epochs of a file, in its order."""
    with Path(path).open(encoding="ascii") as file:
        for line in file:
            try:
                values = json.loads(line)
            except ValueError:  # half a line
                continue
            yield EpochProgress.from_dict(values)
