"""Where in the user's program a transformation was made: `clicks.py:14`."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

_PACKAGE_FOLDERS = (
    *("opchain.compiler.dsl", "opchain.compiler.table", "opchain.compiler.graph"),
    "opchain.compiler.interception",
    "opchain.datastream",
)


class CallSite(NamedTuple):
    """A line of the user's program; prints as `file.py:line`."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.path)}:{self.line}"  # noqa: PTH119 - hot: every DSL call


UNKNOWN_CALL_SITE = CallSite("<unknown>", 0)


def user_call_site() -> CallSite:
    """The innermost frame that is not opchain's own DSL.

    One walk of a few frames per DSL call, no traceback object and no source lines are loaded.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to look up the stack cheaply
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        _PACKAGE_FOLDERS
    ):
        frame = frame.f_back
    return CallSite(frame.f_code.co_filename, frame.f_lineno)
