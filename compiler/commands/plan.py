"""What a program compiles to: `opchain plan` prints it, `explain` gives reasons edge by edge, `diff` compares two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import answer, examples, output_width, write_file
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    Request,
    captured_program,
    is_saved_plan,
    note_unused_options,
    planned,
    read_saved_plan,
    takes_program,
)
from opchain.compiler.execution import asks_for_epochs, positions_needed_by, restart_strategy
from opchain.compiler.graph.plan import Program, required
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.passes.share_data_sets import PICKLE
from opchain.compiler.plan.diff import diff_plans, diff_text
from opchain.compiler.plan.explain import FORMATS, STAGES, Form, explain, print_saved
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import DEFAULT_WIDTH, Row, set_lines
from opchain.compiler.plan.text import edges_text, remarks_text
from opchain.runtime.epochs.delivered_sources import why_no_epochs
from opchain.runtime.program.operator_specs import SourceSpec

if TYPE_CHECKING:
    from opchain.compiler.settings.job_settings import JobSettings


@click.command(
    cls=ProgramCommand,
    short_help="Prints the plan of FILE: its chains and exchanges.",
    epilog=examples("opchain plan job.py", "opchain plan -m shop.totals -o plan.html"),
)
@click.argument("file")
@takes_program
@click.option(
    "--stage",
    type=click.Choice(list(STAGES)),
    default="job-graph",
    show_default=True,
    help="How far the program is compiled.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="By default the suffix of -o, such as html, or else text. flink-json is for Flink's plan visualizer, html for "
    "a browser.",
)
@click.option(
    "--call-sites/--no-call-sites",
    default=True,
    help="Whether the text shows the lines of the program.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Write to a file instead of printing.",
)
def plan(
    file: str, request: Request, stage: str, form: str | None, call_sites: bool, output: Path | None
) -> None:
    """Prints the plan of FILE: a program, or a plan saved as JSON.

    FILE:FUNCTION calls FUNCTION(env) of the program, which adds the operators. -m MODULE instead of FILE takes a module.

    Each operator has a line with its name, its kind, its place in the program, and the state that its checkpoints have:
    keyed state, broadcast state, operator state, source position (how far a source has read), records in flight (of
    asynchronous calls), or uncommitted output (of sinks). An arrow -> is a call in the same task, ==> an exchange.

    The program runs until it would execute a job. Its output goes to standard error. It gets ARGUMENTS and every option
    that is not listed here. Put -- before its own options of the same name.
    """
    form = form or format_of(output)
    if form == "html" and output is None and is_terminal():
        raise CommandError("an HTML page cannot be shown in a terminal; add -o PAGE.html")
    text = Form(width=output_width() if output is None else DEFAULT_WIDTH, call_sites=call_sites)
    note_unused_options(file, request)
    if is_saved_plan(file):
        try:
            _write_or_print(print_saved(read_saved_plan(file), stage, form, text), output)
        except ValueError as error:
            raise CommandError(f"{file} is a saved plan: {error}") from None
        return
    _check(stage, form)
    with captured_program(file, request) as program:
        printed = explain(program, stage, form, text=text)
        if (stage, form) == ("job-graph", "text"):
            printed += run_text(program)
        _write_or_print(printed, output)


def format_of(output: Path | None) -> str:
    """The format that belongs to the suffix of a file; text for other suffixes."""
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    return {"htm": "html", "mmd": "mermaid"}.get(suffix, suffix if suffix in FORMATS else "text")


def run_text(program: Program) -> str:
    """How the job will run: the effect of its settings."""
    settings = program.settings
    is_local = settings.target == "local"
    graph = required(compile_program(program, "stream-graph").stream_graph)
    is_unbounded = any(
        isinstance(node.spec, SourceSpec) and not node.spec.is_bounded for node in graph.nodes()
    )
    why_none = _why_no_checkpoints(program, is_unbounded=is_unbounded)
    is_live = is_unbounded and why_none is not None
    rows = [
        ("runs", "in this process" if is_local else "on Spark"),
        ("checkpoints", _checkpoints_text(settings, why_none)),
        ("state backend", "hashmap (batch mode)" if graph.is_batch else settings.state_backend),
        ("buffer timeout", _timeout_text(settings, is_live=is_live)),
        ("restarts", str(restart_strategy(settings))),
        (
            "exchanges",
            "pipelined: all tasks run at once"
            if is_live
            else f"blocking{' within an epoch' * is_unbounded}: stages run one after another",
        ),
    ]
    if any(edge.serializer == PICKLE for edge in job_plan(compile_program(program)).edges):
        rows.append(("pickled", "no type of these records is declared (output_type or type_info)"))
    return "\n" + set_lines([Row(row) for row in rows])


def _why_no_checkpoints(program: Program, *, is_unbounded: bool) -> str | None:
    if not is_unbounded:
        return "the job is bounded"
    if program.settings.target != "local":
        return None
    job = required(compile_program(program).job_program)
    if not asks_for_epochs(program) and positions_needed_by(job) is None:
        return "the job runs in this process, and sets no execution.checkpointing.interval"
    return why_no_epochs(job)


def _checkpoints_text(settings: JobSettings, why_none: str | None) -> str:
    if why_none is not None:
        return f"none: {why_none}"
    every = f"{settings.checkpoint_interval_ms} ms" if settings.checkpoint_interval_ms else "epoch"
    where = settings.checkpoint_dir or "a temporary directory, deleted when the job ends"
    return f"every {every}, exactly once, in {where}"


def _timeout_text(settings: JobSettings, *, is_live: bool) -> str:
    said = "none" if settings.buffer_timeout_ms < 0 else f"{settings.buffer_timeout_ms} ms"
    return (
        said
        if is_live
        else f"{said}, without effect: only the records decide when a buffer is sent"
    )


def _write_or_print(printed: str, output: Path | None) -> None:
    if output is not None:
        write_file(output, printed)
    else:
        answer(printed)


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def _check(stage: str, form: str) -> None:
    """Refuses a wrong format before the program runs, which may take long."""
    formats = STAGES[stage].printers
    if form not in formats:
        raise CommandError(f"stage {stage} has no format {form}; it has {', '.join(formats)}")


@click.command(
    "explain",
    cls=ProgramCommand,
    short_help="Explains for each edge why it is chained or not.",
    epilog=examples("opchain explain job.py", "opchain explain --code job.py"),
)
@click.argument("file")
@takes_program
@click.option(
    "--code",
    is_flag=True,
    help="Explain for each operator which rules of code generation were applied, and why others were not.",
)
def explain_edges(file: str, request: Request, *, code: bool) -> None:
    """Explains for each edge of FILE whether it is chained, and if not, which rules it breaks and what would help.

    FILE and ARGUMENTS are as for 'opchain plan'.
    """
    if code:
        with captured_program(file, request) as program:
            answer(remarks_text(compile_program(program)))
        return
    note_unused_options(file, request)
    with planned(file, request) as plan:
        answer(edges_text(plan, width=output_width()))


DIFFERENT = 1
"""The exit code of `diff` if the plans differ."""


@click.command(
    cls=ProgramCommand,
    short_help="Compares two plans, and shows which state would be lost.",
    epilog=examples("opchain diff old.py new.py", "opchain diff --fail-on state plan.json job.py"),
)
@click.argument("before")
@click.argument("after")
@takes_program
@click.option(
    "--fail-on",
    type=click.Choice(["any", "state"]),
    default="any",
    show_default=True,
    help="When the exit code is 1: after any difference, or only if state would be lost.",
)
@click.pass_context
def diff(
    context: click.Context,
    before: str,
    after: str,
    request: Request,
    fail_on: str,
) -> None:
    """Shows the changes from BEFORE to AFTER, and the state that a restore would not find.

    Both are programs or plans saved with 'opchain plan FILE --format json'; programs get ARGUMENTS.

    Exit codes: 0 the same, 1 different, 2 a program or file is in error.
    """
    with planned(before, request) as old, planned(after, request) as new:
        found = diff_plans(old, new)
        answer(diff_text(found, width=output_width()))
    counts = found.state if fail_on == "state" else not found.is_empty
    context.exit(DIFFERENT if counts else 0)


COMMANDS = (
    plan,
    explain_edges,
    diff,
)
