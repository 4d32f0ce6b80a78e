"""The option of commands that read checkpoints, or ask jobs that write some: the key that signs them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from opchain.compiler.commands.failures import clear_errors
from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey, read_key

if TYPE_CHECKING:
    from collections.abc import Callable


def takes_key(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--key-file`; the command gets the key as `key`."""

    @click.option(
        "--key-file",
        metavar="FILE",
        help="The key that CHECKPOINT is signed by (execution.checkpointing.key-file of the job).",
    )
    @functools.wraps(command)
    def with_key(key_file: str | None, **others: Any) -> None:
        command(key=key_of(key_file), **others)

    return with_key


def key_of(file: str | None) -> CheckpointKey | None:
    """The key in a file that an option names; None where none is named."""
    with clear_errors():
        return None if file is None else read_key(file)
