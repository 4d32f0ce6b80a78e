"""What `map_batches` asks for, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, declared_type, type_of
from opchain.runtime.columnar.type_mapping import spark_type_of
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import MapBatchesSpec
from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo

if TYPE_CHECKING:
    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.stream import Stream

FORMATS = ("list", "arrow")


def batches_spec(
    stream: Stream[Any],
    func: Any,
    output_type: DeclaredType,
    batch_format: str,
    *,
    one_to_one: bool,
) -> MapBatchesSpec:
    """The operator.

    Raises:
        ValueError: There is no such format.
        GraphError: Records are to be columns, and nothing says which.
    """
    call = "map_batches"
    if batch_format not in FORMATS:
        raise ValueError(
            f"{at_call(call)} got batch_format={batch_format!r}; the formats are "
            f"{' and '.join(map(repr, FORMATS))} (a RecordBatch has to_pandas())"
        )
    if batch_format == "list":
        return MapBatchesSpec(func, batch_format, one_to_one)
    source = stream.transformation
    record_type = declared_type(source)
    if record_type is None:
        raise GraphError(
            f"{at_call(call)}: '{source.name}' ({source.call_site}) has no declared record type, "
            f"which Arrow batches need: declare it, as in map(f, "
            f"output_type=Types.ROW_NAMED(...)), or use lists"
        )
    try:
        columns = spark_type_of(record_type)
    except GraphError as error:
        raise GraphError(f"{at_call(call)}: {error}") from error
    given = type_of(output_type, call)
    gives_values = given is not None and not isinstance(given, (RowTypeInfo, TupleTypeInfo))
    return MapBatchesSpec(func, batch_format, one_to_one, columns, gives_values)
