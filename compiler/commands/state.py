"""`opchain state`: the state in a checkpoint, row by row."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import opchain.state
from opchain.compiler.command_line.failures import clear_errors
from opchain.compiler.command_line.keys import literal, takes_key
from opchain.compiler.command_line.output import (
    answer,
    check_folder_of,
    examples,
    note,
    output_width,
    write_file,
)
from opchain.compiler.plan.layout import Row, counted, set_lines
from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, CheckpointKey
from opchain.runtime.checkpoint.savepoint import find_checkpoint
from opchain.runtime.checkpoint.state_rows import Chosen, as_json, chosen_operators
from opchain.runtime.errors import imported, short_repr
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from opchain.state import StateRow

_SHOWN = 100
_FORMATS = ("text", "json", "parquet")


@click.command(
    "state",
    short_help="Shows the state in CHECKPOINT, row by row.",
    epilog=examples(
        "opchain state /data/job --operator totals --key Berlin",
        "opchain state /data/job/chk-12 --state count -o counts.parquet",
    ),
)
@click.argument("checkpoint")
@click.option("--operator", metavar="O", help="One operator: its uid, name or id.")
@click.option("--state", "name", metavar="S", help="One state, or one timer service, by its name.")
@click.option("--key", "key_text", metavar="K", help="One key: a Python literal, or a string.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N rows.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="text, json (an object per line), or parquet; by default the suffix of -o, or else text.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write into a file.")
@takes_key
def state(
    checkpoint: str,
    operator: str | None,
    name: str | None,
    key_text: str | None,
    limit: int | None,
    form: str | None,
    output: Path | None,
    key: CheckpointKey | None,
) -> None:
    """Shows the state in CHECKPOINT: keyed state, timers, contents of windows, operator state.

    CHECKPOINT is as in 'opchain checkpoint'. It is unpickled, so its author can run code on this machine. Read only
    checkpoints of your own jobs, or signed ones (--key-file). Classes of the job must be importable.

    Text shows at most 100 rows, unless --limit is set. Parquet needs one type per column, so choose one state.
    """
    chosen_form = form or _form_of(output)
    if chosen_form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs -o FILE")
    if output is not None:
        check_folder_of(output)
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        if key is None:
            note(RUNS_PICKLES.format(found.storage.url))
        chosen_operators(found.metadata, operator, name)
        chosen = Chosen(operator, name, None if key_text is None else (literal(key_text),))
        rows = opchain.state.StateRows(found, chosen)
        if chosen_form == "parquet":
            assert output is not None
            _write_parquet(rows, output)
            return
        if chosen_form == "json":
            text = "".join(f"{as_json(row)}\n" for row in islice(rows, limit))
        else:
            text = _text(rows, limit or _SHOWN)
    if output is None:
        answer(text)
    else:
        write_file(output, text)


def _form_of(output: Path | None) -> str:
    suffix = "" if output is None else output.suffix.lower()
    return {".json": "json", ".jsonl": "json", ".parquet": "parquet"}.get(suffix, "text")


def _write_parquet(rows: opchain.state.StateRows, output: Path) -> None:
    parquet = imported("pyarrow.parquet", "files", "writing Parquet")
    parquet.write_table(rows.to_arrow(), output)
    note(f"{output} written")


def _text(rows: opchain.state.StateRows, limit: int) -> str:
    found = iter(rows)
    shown = list(islice(found, limit))
    more = sum(1 for _ in found)
    lines: list[Any] = []
    operator = None
    for row in shown:
        if row.operator_id != operator:
            operator = row.operator_id
            lines += [f"operator '{row.operator}' (id {operator})", Row(_HEAD)]
        lines.append(Row(_cells(row)))
    if not shown:
        lines.append("no state is stored there")
    if more:
        lines.append(f"and {counted(more, 'row')} more: --limit, or -o FILE.json")
    return set_lines(lines, output_width())


_HEAD = ("  state", "kind", "key", "window", "key group", "value")


def _cells(row: StateRow) -> tuple[str, ...]:
    is_timer = row.kind.endswith("timer")
    return (
        f"  {row.state}",
        row.kind,
        "-" if row.key_group is None and row.key is None else short_repr(row.key),
        _window(row),
        "-" if row.key_group is None else str(row.key_group),
        _time(row.value) if is_timer else short_repr(row.value),
    )


def _window(row: StateRow) -> str:
    if row.window_end is None:
        return "-" if row.namespace is None else short_repr(row.namespace)
    if row.window_start is None:
        return "global"
    if row.window_end == MAX_LONG_VALUE:
        return f"number {row.window_start}"
    return f"{_time(row.window_start)} to {_time(row.window_end)}"


def _time(time_ms: int) -> str:
    try:
        at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(time_ms)
    return f"{at:%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03d}"


COMMANDS = (state,)
