"""Records to columns: a column is converted at once, and value by value only if that fails.

Arrow alone would accept bytes for a string, text for bytes, 1.5 for 1, a datetime for a date, and any datetime for an
instant. Spark would then read other values than the record has, so these are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import accumulate, chain
from typing import Any

from opchain.runtime.columnar.decode import EPOCH, EPOCH_UTC
from opchain.runtime.columnar.spark_types import (
    SparkField,
    SparkType,
    arrow_schema,
    arrow_type,
    pyarrow,
)
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.errors import RecordSchemaError, short_repr
from opchain.runtime.time import Instant
from opchain.runtime.types.row import Row

_MICROS = timedelta(microseconds=1)


class RecordEncoder:
    """Converts records to record batches.

    Args:
        record_type: A struct for rows, tuples, dicts and objects with attributes. Any other type for records that are
            the value of the only column.
        where: The operator, for errors.
    """

    def __init__(self, record_type: SparkType, where: str) -> None:
        self._is_row = record_type.kind == "struct"
        self._columns = columns_of(record_type)
        self._where = where
        self._schema = arrow_schema(self._columns)

    def batch(self, records: Sequence[Any]) -> Any:
        """Converts records to columns.

        Raises:
            RecordSchemaError: A record does not match the schema.
        """
        columns = _fields(records, self._columns, "", self._where) if self._is_row else [records]
        arrays = [
            _column(values, field, field.name, self._where)
            for field, values in zip(self._columns.fields, columns, strict=True)
        ]
        arrow = pyarrow()
        if not arrays:
            # The only way to create a batch with rows but without columns.
            empty = arrow.array([{}] * len(records), arrow.struct([]))
            return arrow.RecordBatch.from_struct_array(empty)
        return arrow.RecordBatch.from_arrays(arrays, schema=self._schema)


def _column(values: Sequence[Any], field: SparkField, path: str, where: str) -> Any:
    array = _array(values, field.type, path, where)
    if not field.nullable and array.null_count:
        raise RecordSchemaError(
            f"{where}: column '{path}' got None, but its type {field.type.sql} is not nullable: "
            f"filter such "
            "records, or make the column nullable in the schema"
        )
    return array


def _array(values: Sequence[Any], spark_type: SparkType, path: str, where: str) -> Any:
    make = _NESTED.get(spark_type.kind)
    if make is not None:
        return make(values, spark_type, path, where)
    try:
        return _plain_array(values, spark_type)
    except Exception as error:
        for value in values:
            reason = _refusal(value, spark_type)
            if reason is not None:
                raise _misfit(value, spark_type, path, where, str(reason)) from reason
        raise RecordSchemaError(
            f"{where}: column '{path}' of type {spark_type.sql} cannot be converted: {error}"
        ) from error


def _refusal(value: Any, spark_type: SparkType) -> Exception | None:
    try:
        _plain_array([value], spark_type)
    except Exception as reason:  # noqa: BLE001 - whatever Arrow says of it
        return reason
    return None


def _plain_array(values: Sequence[Any], spark_type: SparkType) -> Any:
    kinds = set(map(type, values))
    refused: AbstractSet[type] = _REFUSED.get(spark_type.kind, frozenset()) & kinds
    if spark_type.kind in _WHOLE_NUMBERS:  # Arrow would truncate the fraction
        refused = {kind for kind in kinds - {type(None)} if not hasattr(kind, "__index__")}
    if refused:
        names = ", ".join(sorted(kind.__name__ for kind in refused))
        raise TypeError(f"{names} is not accepted")
    prepare = _PREPARED.get(spark_type.kind)
    prepared = values if prepare is None else [None if v is None else prepare(v) for v in values]
    target = arrow_type(spark_type)
    if prepare is not None:
        arrow = pyarrow()
        return arrow.array(prepared, type=arrow.int64()).view(target)
    return pyarrow().array(prepared, type=target, from_pandas=False)


def _instant(value: Any) -> int:
    if isinstance(value, Instant):
        return value.seconds * 1_000_000 + value.nanos // 1_000
    if not isinstance(value, datetime):
        raise TypeError("it is neither a datetime nor an Instant")
    if value.tzinfo is None:
        raise TypeError("it has no time zone; add one, or declare the column as timestamp_ntz")
    return (value - EPOCH_UTC) // _MICROS


def _local_date_time(value: Any) -> int:
    if not isinstance(value, datetime):
        raise TypeError("it is not a datetime")
    if value.tzinfo is not None:
        raise TypeError(
            "it has a time zone, but the column has none; declare the column as timestamp"
        )
    return (value - EPOCH) // _MICROS


def _interval(value: Any) -> int:
    if not isinstance(value, timedelta):
        raise TypeError("it is not a timedelta")
    return value // _MICROS


_PREPARED: dict[str, Callable[[Any], int]] = {
    "timestamp": _instant,
    "timestamp_ntz": _local_date_time,
    "day_time_interval": _interval,
}

_WHOLE_NUMBERS = frozenset({"byte", "short", "integer", "long"})

_REFUSED: dict[str, frozenset[type]] = {
    "string": frozenset({bytes, bytearray, memoryview}),
    "binary": frozenset({str}),
    "date": frozenset({datetime}),
    "float": frozenset({bool}),
    "double": frozenset({bool}),
}


def _list_array(values: Sequence[Any], spark_type: SparkType, path: str, where: str) -> Any:
    for value in values:
        if value is not None and (
            isinstance(value, (str, bytes, Row, Mapping)) or not isinstance(value, Iterable)
        ):
            raise _misfit(value, spark_type, path, where, "it is not a list")
    # More than once: an iterator would be empty the second time.
    lists = [None if value is None else list(value) for value in values]
    inner = list(chain.from_iterable(each for each in lists if each))
    items = _array(inner, spark_type.item, f"{path}[]", where)
    _check_nulls(items, spark_type, path, where)
    return _cut_array(lists, items, spark_type)


def _map_array(values: Sequence[Any], spark_type: SparkType, path: str, where: str) -> Any:
    for value in values:
        if value is not None and not isinstance(value, Mapping):
            raise _misfit(value, spark_type, path, where, "it is not a dict")
    assert spark_type.key is not None
    there = [each for each in values if each]
    key_values = list(chain.from_iterable(there))
    keys = _array(key_values, spark_type.key, f"{path} (key)", where)
    if keys.null_count:
        raise _misfit({None: ...}, spark_type, path, where, "a key of a map is None")
    inner = list(chain.from_iterable(each.values() for each in there))
    items = _array(inner, spark_type.item, f"{path} (value)", where)
    _check_nulls(items, spark_type, path, where)
    map_type = arrow_type(spark_type)
    fields = [map_type.key_field, map_type.item_field]
    entries = pyarrow().StructArray.from_arrays([keys, items], fields=fields)
    return _cut_array(values, entries, spark_type)


def _struct_array(values: Sequence[Any], spark_type: SparkType, path: str, where: str) -> Any:
    columns = _fields(values, spark_type, path, where)
    mask = _mask(values)
    arrow = pyarrow()
    target = arrow_type(spark_type)
    if not columns:
        return arrow.array([None if value is None else {} for value in values], type=target)
    arrays = []
    for field, column in zip(spark_type.fields, columns, strict=True):
        place = f"{path}.{field.name}"
        array = _array(column, field.type, place, where)
        # Null where the whole struct is.
        absent = 0 if mask is None else sum(value is None for value in values)
        if not field.nullable and array.null_count > absent:
            raise _misfit(None, field.type, place, where, "it is not null")
        arrays.append(array)
    return arrow.StructArray.from_arrays(arrays, fields=list(target), mask=mask)


_NESTED: dict[str, Callable[..., Any]] = {
    "array": _list_array,
    "map": _map_array,
    "struct": _struct_array,
}


def _fields(
    records: Sequence[Any], struct: SparkType, path: str, where: str
) -> list[Sequence[Any]]:
    """The fields of all records, column by column; a record that is None, inside others, has none."""
    names = [field.name for field in struct.fields]
    nothing = [None] * len(names)
    known = names  # rows that were made together share the list of their names
    rows: list[Sequence[Any]] = []
    for record in records:
        if record.__class__ is tuple and len(record) == len(names):
            rows.append(record)
        elif record.__class__ is Row and (record._fields is known or record._fields == names):
            known = record._fields
            rows.append(record._values)  # noqa: SLF001 - for speed
        elif record is None and path:
            rows.append(nothing)
        else:
            rows.append(_field_values(record, names, struct, path, where))
    return [*zip(*rows, strict=True)] if rows else [()] * len(names)


def _field_values(
    record: Any, names: list[str], struct: SparkType, path: str, where: str
) -> list[Any]:
    if isinstance(record, Row) and record.has_field_names():
        found = record.as_dict()
    elif isinstance(record, (Row, tuple, list)):
        values = list(record)
        if len(values) != len(names):
            raise _misfit(record, struct, path, where, f"it has {len(values)} fields")
        return values
    elif isinstance(record, Mapping):
        found = dict(record)
    else:
        attributes = getattr(record, "__dict__", None)
        if attributes is None or isinstance(record, type):
            advice = "records that are not rows need a schema of one type, such as 'bigint'"
            raise _misfit(record, struct, path, where, f"it is not a row ({advice})")
        found = attributes
    unknown = sorted(str(name) for name in found.keys() - set(names))
    if unknown:
        raise _misfit(record, struct, path, where, f"it has {', '.join(unknown)} in addition")
    return [found.get(name) for name in names]


def _check_nulls(items: Any, spark_type: SparkType, path: str, where: str) -> None:
    if items.null_count and not spark_type.contains_null:
        raise _misfit(None, spark_type.item, f"{path}[]", where, "it is not null")


def _cut_array(lists: Sequence[Any], items: Any, spark_type: SparkType) -> Any:
    """An array of lists, or of maps, from the sizes of these and from all their items."""
    arrow = pyarrow()
    sizes = (0 if each is None else len(each) for each in lists)
    offsets = arrow.array(accumulate(sizes, initial=0), type=arrow.int32()).buffers()[1]
    valid = None
    if any(each is None for each in lists):
        valid = arrow.array([each is not None for each in lists], type=arrow.bool_()).buffers()[1]
    return arrow.Array.from_buffers(
        arrow_type(spark_type), len(lists), [valid, offsets], children=[items]
    )


def _mask(values: Sequence[Any]) -> Any:
    """An Arrow array that is true where a value is None; None if no value is."""
    if not any(value is None for value in values):
        return None
    arrow = pyarrow()
    return arrow.array([value is None for value in values], type=arrow.bool_())


def _misfit(
    value: Any, spark_type: SparkType, path: str, where: str, reason: str
) -> RecordSchemaError:
    what = f"column '{path}'" if path else "the row"
    return RecordSchemaError(
        f"{where}: {what} got {short_repr(value)}, {_kind(value)}, but expects {spark_type.sql}: "
        f"{reason}"
    )


def _kind(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
