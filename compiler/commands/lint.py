"""`opchain lint`: what costs or breaks in a program, found without running a job."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import click

from opchain.compiler.commands.failures import clear_errors
from opchain.compiler.commands.output import answer, note
from opchain.compiler.commands.program_command import (
    PASSES_ARGUMENTS_ON,
    ProgramCommand,
    Request,
    captured_program,
    takes_program,
)
from opchain.compiler.commands.state import literal
from opchain.compiler.lint import LINT_RULES, findings_sarif, findings_text, key_skew, lint
from opchain.compiler.passes.pipeline import compile_program


@click.command(
    "lint",
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Finds what costs or breaks in FILE, with the line and a remedy.",
)
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How the findings are printed.",
)
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice([rule.name for rule in LINT_RULES]),
    metavar="RULE",
    help="Leave a rule out; may be repeated. Rules: " + ", ".join(r.name for r in LINT_RULES) + ".",
)
@click.option(
    "--sample",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="KEYS",
    help="A file with the key of a record on each line (a Python literal, else text): shows how they fall on the "
    "subtasks of each keyed operator.",
)
@takes_program
def lint_command(
    file: str, form: str, ignore: tuple[str, ...], sample: Path | None, request: Request
) -> None:
    """Looks for mistakes in the program FILE: each with its line, the reason, and what to change.

    Exits with 1 if it finds any. FILE and ARGUMENTS are those of 'opchain plan'.
    """
    program, captured = captured_program(file, request)
    with clear_errors():
        plan = compile_program(program, "stream-graph")
    findings = lint(plan, ignore)
    if sample is not None:
        keys = [literal(line) for line in sample.read_text("utf-8").splitlines() if line]
        for skew in key_skew(plan, keys):
            note(str(skew))
    if form == "json":
        rows = [{**asdict(finding), "call_site": str(finding.call_site)} for finding in findings]
        answer(json.dumps(rows, indent=2) + "\n")
    elif form == "sarif":
        answer(findings_sarif(findings, version("opchain")))
    else:
        answer(findings_text(findings))
    if captured.failure is not None:
        raise captured.failure
    if findings:
        raise click.exceptions.Exit(1)


COMMANDS = (lint_command,)
