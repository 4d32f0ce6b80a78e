"""Libraries that only some programs need: imported where they are used, missed with a clear error."""

from __future__ import annotations

import importlib
from typing import Any

from opchain.runtime.errors import StreamError


class MissingLibraryError(StreamError, ImportError):
    """A library is not installed on this machine (the driver's, or an executor's)."""


def imported(module: str, extra: str, needed_by: str) -> Any:
    """A module of an optional library.

    Args:
        module: What to import.
        extra: The extra of this project that installs it.
        needed_by: What cannot be done without; begins the error.

    Raises:
        MissingLibraryError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise  # the library is there, and misses something itself
        raise MissingLibraryError(
            f"{needed_by} needs the library '{error.name}', which is not installed in the Python of this "
            f"machine: pip install 'opchain[{extra}]'"
        ) from error
