"""Keys on the command line: keys of records, and keys that sign checkpoints."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any

import click

from opchain.compiler.command_line.failures import clear_errors
from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey, read_key

if TYPE_CHECKING:
    from collections.abc import Callable


def literal(text: str) -> Any:
    """A Python literal, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # what literal_eval documents
        return text


def takes_key(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--key-file`; the command gets the key as `key`."""

    @click.option(
        "--key-file",
        metavar="FILE",
        help="The file with the key that signs the checkpoints (execution.checkpointing.key-file of the job).",
    )
    @functools.wraps(command)
    def with_key(key_file: str | None, **others: Any) -> None:
        command(key=key_of(key_file), **others)

    return with_key


def key_of(file: str | None) -> CheckpointKey | None:
    """The key in a file; None without a file."""
    with clear_errors():
        return None if file is None else read_key(file)
