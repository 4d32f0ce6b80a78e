"""What a schema, a stream or rows say about the columns of a table. Flink: SchemaResolver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call
from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.data_types import (
    DataType,
    DataTypes,
    RowType,
    names_of_fields,
    type_of_stream,
    type_of_value,
)
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import (
    PROCTIME,
    Column,
    Compiler,
    EventTimeColumn,
    ProcessingTimeColumn,
    Typed,
    column_of,
    parsed,
)
from opchain.compiler.table.queries import projection
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.sql import EventTime, RowExpression
from opchain.runtime.time import Duration
from opchain.runtime.types.row import Row
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.table_descriptor import Schema

SOURCE_WATERMARK = "SOURCE_WATERMARK()"


def watermark_of(schema: Schema | None, name: str) -> str | None:
    """The expression of the watermark if a column is the time of the table's events."""
    if schema is None or schema.time is None or schema.time.column != name:
        return None
    return schema.time.expression


def rowtime_column(schema: Schema, where: str) -> Column:
    """The metadata column of a stream: the timestamps of its records.

    Raises:
        GraphError: The column is another one.
    """
    first, *others = schema.metadata
    if others or first.key != "rowtime" or not first.data_type.name.startswith("TIMESTAMP"):
        raise GraphError(
            f"{where}: a stream only has the metadata column 'rowtime' of type TIMESTAMP_LTZ(3), the timestamps of its "
            f"records; '{(others or [first])[0].name}' is another one"
        )
    return Column(first.name, first.data_type)


def resolved_columns(
    schema: Schema, values: dict[str, Typed], where: str
) -> tuple[tuple[Column, ...], dict[str, Typed]]:
    """All columns in order, and the expression of each."""
    values = dict(values)
    for name, expression in schema.computed:
        compiler = Compiler(values, (), f"{where}, column '{name}'")
        values[name] = compiler.compile(parsed(expression, f"{where}: the column '{name}'"))
    order = schema.order or tuple(values)
    columns = [column_of(name, values[name]) for name in order]
    if schema.time is not None:
        time = schema.time.column
        columns = [EventTimeColumn(*each) if each.name == time else each for each in columns]
    return tuple(columns), values


def watermark_strategy(
    schema: Schema, values: dict[str, Typed], path: str
) -> WatermarkStrategy[Any] | None:
    """WATERMARK FOR as a strategy of the source: each split has its own watermark.

    Raises:
        GraphError: The column is not a TIMESTAMP.
        UnsupportedFeatureError: The expression is not `column - INTERVAL ...`.
    """
    if schema.time is None:
        return None
    column, expression = schema.time
    value = values.get(column)
    if value is None or not value.data_type.name.startswith("TIMESTAMP"):
        found = "missing" if value is None else str(value.data_type)
        raise GraphError(
            f"table '{path}': WATERMARK FOR {column} needs a column of type TIMESTAMP(3) or TIMESTAMP_LTZ(3), and it is "
            f"{found}; compute one: ts AS TO_TIMESTAMP_LTZ(millis, 3)"
        )
    tree = parsed(expression, f"table '{path}': the watermark")
    delay_ms = 0
    if (
        type(tree).__name__ == "Sub"
        and type(tree.expression).__name__ == "Interval"
        and tree.this.name == column
    ):
        compiled = Compiler(values, (), f"table '{path}'").compile(tree.expression)
        delay_ms = RowExpression(f"{compiled.text}.total_seconds()", expression)(()) * 1000
    elif not (type(tree).__name__ == "Column" and tree.name == column):
        raise UnsupportedFeatureError(
            f"table '{path}': WATERMARK FOR {column} AS {expression} is not supported; write {column} - INTERVAL '5' "
            "SECOND, or use assign_timestamps_and_watermarks() with a generator of your own"
        )
    # Flink's watermark is the expression itself; a strategy's is one millisecond less.
    lateness = Duration.of_millis(max(0, int(delay_ms) - 1))
    assigner: Any = EventTime(value.text, column)
    return WatermarkStrategy.for_bounded_out_of_orderness(lateness).with_timestamp_assigner(
        assigner
    )


def columns_of_stream(
    stream: DataStream[Any], schema: Schema | None, call: str
) -> tuple[tuple[Column, ...], bool]:
    """The fields of a stream's records as columns, and whether its records are single values.

    A field has the type that the schema declares, or else that of the stream.
    """
    from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo  # noqa: PLC0415 - not for SQL alone

    of = stream.get_type()
    declared = dict(() if schema is None else schema.columns)
    if isinstance(of, RowTypeInfo):
        names, types, is_atomic = list(of.field_names or ()), list(of.field_types), False
    elif isinstance(of, TupleTypeInfo):
        types, is_atomic = list(of.field_types), False
        names = [f"f{number}" for number in range(len(types))]
    else:
        names, types, is_atomic = list(declared)[:1] or ["f0"], [of], True
    unknown = [name for name in declared if name not in names]
    if unknown:
        hint = "; declare output_type=Types.ROW_NAMED([...], [...]) on the operator"
        raise GraphError(
            f"{at_call(call)}: {stream.transformation.label} has no field "
            f"'{unknown[0]}'; its fields are {', '.join(names)}{hint if is_atomic else ''}"
        )
    fields = []
    for name, field_type in zip(names, types, strict=True):
        found = declared.get(name) or type_of_stream(field_type)
        if found is None:
            raise GraphError(
                f"{at_call(call)}: the type of the column '{name}' of {stream.transformation.label} is "
                "unknown; declare output_type=Types.ROW_NAMED([...], [...]) on the operator, or pass a Schema"
            )
        fields.append(Column(name, found))
    return tuple(fields), is_atomic


def rows_of_stream(
    stream: DataStream[Any], fields: Sequence[Column], *, is_atomic: bool
) -> DataStream[Any]:
    """The records of a stream as Rows. A TIMESTAMP_LTZ is a datetime, and not an Instant."""
    from opchain.runtime.types.record_types import RowTypeInfo  # noqa: PLC0415 - not for SQL alone
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    of = stream.get_type()
    types = getattr(of, "field_types", (of,))
    if isinstance(of, RowTypeInfo) and Types.INSTANT() not in types:
        return stream
    texts = ["row" if is_atomic else f"row[{place}]" for place in range(len(fields))]
    values = [
        Typed(f"of_instant({text})" if type_of == Types.INSTANT() else text, field.data_type)
        for text, type_of, field in zip(texts, types, fields, strict=True)
    ]
    return stream.map(projection(fields, values), row_type(fields))


def named_by(
    expressions: Sequence[Any], fields: Sequence[Column], where: str
) -> tuple[tuple[Column, ...], list[Typed]]:
    """The columns that expressions of `from_data_stream` name, and the value of each. Flink: FieldInfoUtils.

    The names are those of fields, or new ones in the order of the fields if none of them is the name of a field. The
    timestamp of a record follows its fields.

    Raises:
        GraphError: An expression names no field.
        TypeError: It is not an expression.
    """
    places = {each.name: place for place, each in enumerate(fields)}
    named = [_named_field(each, where) for each in expressions]
    by_name = any(kind != "" or name in places for name, _, kind in named if kind not in _TIMES_OF)
    columns: list[Column] = []
    values = []
    for number, (name, alias, kind) in enumerate(named):
        place = places.get(name, len(fields)) if by_name else number
        found = fields[place] if place < len(fields) else None
        if kind in _TIMES_OF:
            of, text = _TIMES_OF[kind]
            allowed = () if kind == "proctime" else ("BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ")
            if found is not None and found.data_type.name not in allowed:
                raise GraphError(
                    f"{where}: col('{name}').{kind} would replace the field '{found.name}' of type {found.data_type}; "
                    "put it last, and choose a name that no field has"
                )
            made = EventTimeColumn if kind == "rowtime" else ProcessingTimeColumn
            columns.append(made(alias, of))
            values.append(Typed(text.format(len(fields)), of))
            continue
        if found is None:
            shown = ", ".join(f"{each.name} {each.data_type}" for each in fields)
            raise GraphError(f"{where}: the stream has no field for col('{name}'); it has {shown}")
        columns.append(found._replace(name=alias))
        values.append(Typed(f"row[{place}]", found.data_type))
    names = [each.name for each in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GraphError(f"{where}: two columns would have the name '{twice}'")
    return tuple(columns), values


_TIMES_OF = {
    "rowtime": (DataTypes.TIMESTAMP(3), "row[{}]"),
    "proctime": (DataTypes.TIMESTAMP_LTZ(3), PROCTIME),
}


def _named_field(expression: Any, where: str) -> tuple[str, str, str]:
    """The field that an expression names, the name of its column, and `alias`, `rowtime`, `proctime` or an empty text."""
    tree: Any = expression.tree if isinstance(expression, Expression) else None
    kind = alias = ""
    if type(tree).__name__ == "Alias":
        kind, alias, tree = "alias", tree.alias, tree.this
    if type(tree).__name__ == "Anonymous" and tree.name.lower() in _TIMES_OF:
        kind, tree = tree.name.lower(), tree.expressions[0]
    if type(tree).__name__ != "Column":
        raise TypeError(
            f"{where} got {expression!r}; it takes a Schema, or columns: col('a'), col('a').alias('b'), "
            "col('t').rowtime or col('t').proctime"
        )
    return tree.name, alias or tree.name, kind


def values_of_element(element: Any, schema: Any) -> tuple[Any, ...]:
    """The values of one row of `from_elements`."""
    if isinstance(element, dict):
        names = [each.name for each in schema.fields] if isinstance(schema, RowType) else schema
        return tuple(map(element.get, names))
    return tuple(element) if isinstance(element, (tuple, list, Row)) else (element,)


def columns_of_elements(
    rows: Sequence[tuple[Any, ...]], schema: Any, call: str
) -> tuple[Column, ...]:
    """The columns of `from_elements`. Without a declared type, a column has the type of its first value that is not None.

    Raises:
        GraphError: A type is not declared, and there is no such value.
    """
    if isinstance(schema, RowType):
        return tuple(Column(each.name, each.data_type) for each in schema.fields)
    if isinstance(schema, DataType):
        return (Column("f0", schema),)
    if not rows:
        raise GraphError(
            f"{at_call(call)}: there are no rows, so the types are unknown; pass DataTypes.ROW([...])"
        )
    names = list(schema or names_of_fields(rows[0]))
    columns = []
    for place, name in enumerate(names):
        values = [row[place] for row in rows if place < len(row) and row[place] is not None]
        if not values:
            raise GraphError(
                f"{at_call(call)}: column '{name}' has no values, so its type is unknown; pass DataTypes.ROW([...])"
            )
        columns.append(Column(name, type_of_value(values[0])))
    return tuple(columns)
