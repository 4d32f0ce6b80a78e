"""Draws the job of a query: files, the query, files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from examples.nexmark.model import KINDS
from examples.nexmark.sink import json_lines_sink, sink_of
from examples.nexmark.source import EventSource
from examples.nexmark.streams import Events, Result
from opchain.common import WatermarkStrategy

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment

QUERIES = tuple(f"q{number}" for number in range(23))


def draw(
    env: StreamExecutionEnvironment,
    query: str,
    input_path: str,
    output_folder: str,
    *,
    side_input: str | None = None,
    late_folder: str | None = None,
    watermark_after_every_event: bool = False,
) -> None:
    """Draws a query on an environment.

    Args:
        env: The environment.
        query: One of QUERIES.
        input_path: A file of JSON lines, or a folder of such files.
        output_folder: The folder for the rows.
        side_input: The CSV file of q13.
        late_folder: A folder for the events that windows drop, in the format of the input, or None.
        watermark_after_every_event: Whether to read in one subtask, with a watermark after every event.

    Raises:
        ValueError: If there is a `late_folder` but the query drops no events, or if q13 has no side input.
    """
    # No function in these queries modifies a record.
    env.get_config().enable_object_reuse()
    source = EventSource(input_path)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "events")
    if watermark_after_every_event:
        stream.set_parallelism(1)
    events = Events(
        stream, source, side_input, late_folder is not None, watermark_after_every_event
    )
    result: Result = import_module(f"examples.nexmark.{query}").build(events)
    result.rows.sink_to(sink_of(result, output_folder)).name(f"{query} rows")
    if late_folder is None:
        return
    if not result.late:
        raise ValueError(f"{query} drops no late events; q5, q7, q8 and q11 do")
    first, *others = [
        late.map(_as_event(kind, source.fields[kind])) for kind, late in result.late.items()
    ]
    late = first.union(*others) if others else first
    late.sink_to(json_lines_sink(late_folder)).name("late events")


def _as_event(kind: str, fields: tuple[str, ...]) -> Any:
    """A function from the fields of an event to the JSON object of the event in the input."""
    nothing = dict.fromkeys(KINDS)
    number = list(KINDS).index(kind)

    def event(record: tuple[Any, ...]) -> dict[str, Any]:
        return {"event_type": number, **nothing, kind: dict(zip(fields, record, strict=True))}

    return event
