"""`opchain key-groups`: the key group and subtask of a key."""

from __future__ import annotations

from typing import Any

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.keys import literal
from opchain.compiler.command_line.output import answer, examples
from opchain.compiler.plan.layout import Row, one_line, set_lines
from opchain.runtime.errors import KeyTypeError
from opchain.runtime.state.keys.key_groups import (
    MAX_PARALLELISM_LIMIT,
    default_max_parallelism,
    key_group,
    operator_index,
)
from opchain.runtime.state.keys.key_hashers import NAMED_HASHERS, hasher_named
from opchain.runtime.state.keys.pyflink_keys import RowKey, hash_pickled

_AUTO = "auto"
_SIZE = click.IntRange(1, MAX_PARALLELISM_LIMIT)


@click.command(
    "key-groups",
    epilog=examples(
        "opchain key-groups ada bob --parallelism 4",
        "opchain key-groups 17 --type Long --max-parallelism 256",
    ),
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option(
    "--parallelism",
    type=_SIZE,
    default=1,
    show_default=True,
    help="The number of subtasks that share the key groups.",
)
@click.option(
    "--max-parallelism",
    type=_SIZE,
    help="The number of key groups; by default derived from the parallelism, as in Flink.",
)
@click.option(
    "--type",
    "type_name",
    type=click.Choice([_AUTO, *NAMED_HASHERS], case_sensitive=False),
    default=_AUTO,
    show_default=True,
    help="The Java type of the key, which decides its hash code; auto derives it from the Python type.",
)
def key_groups(
    keys: tuple[str, ...], parallelism: int, max_parallelism: int | None, type_name: str
) -> None:
    """Prints the hash code, key group and subtask of each KEY.

    A KEY is a Python literal (42, 1.5, True, "(1, 'a')", b'x') or else a string. Put -- before negative numbers. With
    --type String every KEY is a string.
    """
    groups = max_parallelism or default_max_parallelism(parallelism)
    if groups < parallelism:
        raise CommandError(
            f"--max-parallelism is {groups} and --parallelism {parallelism}: each subtask needs at "
            "least one key group"
        )
    rows = [Row(("key", "type", "hash code", "key group", "subtask"))]
    for text in keys:
        key = text if type_name in ("String", "Character") else literal(text)
        rows.append(_row(key, type_name, groups, parallelism))
    answer(set_lines(rows))


def _row(key: Any, type_name: str, max_parallelism: int, parallelism: int) -> Row:
    hasher = hash_pickled if type_name == _AUTO else RowKey(hasher_named(type_name))
    try:
        code = hasher(key)
        group = key_group(key, max_parallelism, hasher)
    except KeyTypeError as error:
        raise CommandError(f"no key group for {one_line(repr(key))}: {error}") from None
    subtask = operator_index(group, max_parallelism, parallelism)
    kind = type(key).__name__ if type_name == _AUTO else type_name
    return Row((one_line(repr(key)), kind, str(code), str(group), str(subtask)))


COMMANDS = (key_groups,)
