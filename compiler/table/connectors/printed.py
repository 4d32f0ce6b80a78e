"""Tables that are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.row_types import printed_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.connectors.options import Options
    from opchain.compiler.table.expressions import Column


def write_printed(stream: DataStream[Any], options: Options) -> Any:
    """Prints the rows of a stream."""
    prefix = options.take("print-identifier", default="") or ""
    to_stderr = options.flag("standard-error")
    options.finish()
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - few tables are printed

    found = printers(options.columns)

    def printed(row: Any) -> str:
        return f"+I[{', '.join(text(value) for text, value in zip(found, row))}]"  # noqa: B905 - as declared

    texts = stream.map(printed, Types.STRING())
    return texts.print_to_err(prefix) if to_stderr else texts.print(prefix or None)


def printers(columns: Sequence[Column]) -> list[Callable[[Any], str]]:
    """A function that prints the values of columns like Flink's `print`."""
    from opchain.runtime.types.printed_form import java_text_of  # noqa: PLC0415 - few tables are printed

    return [java_text_of(printed_type(each.data_type)) for each in columns]
