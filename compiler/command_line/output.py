"""Output of commands: the answer goes to standard output, everything else to standard error.

Colours and the width of the terminal are used only on a terminal. So files and pipes get the same bytes everywhere.
NO_COLOR (no-color.org) switches colours off.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.plan.layout import DEFAULT_WIDTH, as_ascii, without_controls

if TYPE_CHECKING:
    from pathlib import Path

_COLOURS: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), style)
    for pattern, style in (
        (r"^(?:job '|vertex \d|stage \d).*$", {"bold": True}),
        (r"==> .*$", {"fg": "cyan"}),
        (r"^ *[│ ]*not chained:? ", {"fg": "yellow"}),
        (r"^(?:removed|unchained) .*$|^restoring state: .*$", {"fg": "red"}),
        (r"^(?:added|chained) .*$", {"fg": "green"}),
    )
)


def answer(text: str) -> None:
    """Writes the answer of a command, in ASCII if the output cannot encode it.

    Raises:
        CommandError: The answer cannot be written. A reader that closes its pipe causes no error: click ends quietly.
    """
    text = without_controls(text)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        text = coloured(text)
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = as_ascii(text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write to standard output: {error.strerror}") from None


def examples(*lines: str) -> str:
    """Two command lines, for the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def to_stderr(text: str, *, nl: bool = True) -> None:
    """Prints a text to standard error. Control characters are escaped: names, errors and records may have them."""
    click.echo(without_controls(text), nl=nl, err=True)


def note(text: str) -> None:
    """Prints a note for the user to standard error."""
    to_stderr(f"opchain: note: {text}")


def check_folder_of(path: Path) -> None:
    """Refuses a file whose folder does not exist, before anything runs.

    Raises:
        CommandError: There is no such folder.
    """
    if not path.parent.is_dir():
        raise CommandError(
            f"cannot write {path}: there is no folder {path.parent}; create it first"
        )


def write_file(path: Path, text: str) -> None:
    """Writes the answer of a command into a file.

    Raises:
        CommandError: The file cannot be written, or there is no folder for it.
    """
    check_folder_of(path)
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
    note(f"{path} written")


def coloured(text: str) -> str:
    """The text with the colours of a terminal."""
    for pattern, style in _COLOURS:
        text = pattern.sub(lambda found, style=style: click.style(found[0], **style), text)  # type: ignore[misc]
    return text


def output_width() -> int:
    """The width of the terminal; DEFAULT_WIDTH for files and pipes."""
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
