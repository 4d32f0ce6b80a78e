"""Runs a file as Python would: `__main__`, `sys.argv`, `sys.path`; and keeps what it prints apart."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.compiler.commands.failures import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SAVED_PLAN = ".json"
"""What the name of a plan ends in that `opchain plan FILE --format json` wrote."""


def check_is_python(path: Path) -> None:
    """Refuses a file that Python cannot compile, and a saved plan, which it mostly could.

    Raises:
        CommandError: With the line.
    """
    if path.suffix.lower() == SAVED_PLAN:
        raise CommandError(
            f"{path} is a saved plan, not a Python program; 'opchain plan', 'explain', 'diff' and "
            "'checkpoint diff' take one"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come when the program is run
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f" ({path.name}:{error.lineno})" if error.lineno else ""
        raise CommandError(f"{path} is not a Python program: {error.msg}{line}") from None
    except ValueError as error:  # null bytes, in some versions of Python
        raise CommandError(f"{path} is not a Python program: {error}") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def as_main_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Within the block `sys.argv` and `sys.path` are those of `python FILE arguments`.

    Modules that are imported from the program's folder meanwhile are forgotten afterwards: the two
    programs of a diff may each have a `common.py` beside them.
    """
    folder = str(path.resolve().parent)
    argv, search_path, known = sys.argv, sys.path[:], set(sys.modules)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search_path
        for name in sorted(set(sys.modules) - known):
            if _lies_in(folder, name.partition(".")[0]):
                del sys.modules[name]


def _lies_in(folder: str, top_level: str) -> bool:
    return any(Path(folder, top_level + tail).exists() for tail in (".py", "/__init__.py"))


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Sends standard output to standard error, that of child processes too."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            is_real = sys.__stdout__ is not None and sys.__stdout__.fileno() == 1
            saved = os.dup(1) if is_real else None
        except (OSError, ValueError):  # closed, or replaced by something without a descriptor
            saved = None
        if saved is None:
            yield
            return
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(saved, 1)
            os.close(saved)
