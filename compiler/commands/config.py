"""`opchain config`: the settings that a job takes."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import answer, examples, output_width
from opchain.compiler.plan.layout import Paragraph, Row, set_lines
from opchain.compiler.settings.settings_reader import setting_rows


@click.group(
    short_help="Lists the settings of jobs.",
    epilog=examples("opchain config ls", "opchain config ls checkpointing"),
)
def config() -> None:
    """The settings that a job takes: by -D KEY=VALUE, or from a Configuration in the program."""


@config.command(
    "ls",
    short_help="Lists settings, all or those that match PATTERN.",
    epilog=examples("opchain config ls", "opchain config ls checkpointing"),
)
@click.argument("pattern", required=False)
def list_settings(pattern: str | None) -> None:
    """Lists settings with type or choices, default and meaning.

    PATTERN is a part of a key or of its meaning, or a pattern with * and ? for the whole key.
    """
    text = (pattern or "").lower()
    is_glob = any(sign in text for sign in "*?[")
    lines: list[Row | Paragraph | str] = []
    for row in setting_rows():
        named = row.key.lower()
        if not (
            fnmatchcase(named, text) if is_glob else text in f"{named} {row.description.lower()}"
        ):
            continue
        default = f", default {row.default}" if row.default else ""
        lines += [
            row.key,
            Paragraph("    ", "    ", f"{' | '.join(row.values)}{default}"),
            Paragraph("    ", "    ", row.description),
        ]
    if not lines:
        words = sorted({word for row in setting_rows() for word in row.key.split(".")})
        close = get_close_matches(text, words, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise CommandError(
            f"no setting matches {pattern!r}; {hint}'opchain config ls' without PATTERN lists all"
        )
    answer(set_lines(lines, output_width()))


COMMANDS = (config,)
