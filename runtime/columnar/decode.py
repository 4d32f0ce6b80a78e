"""Columns to records: Arrow arrays as lists of Python values, record batches as lists of rows.

Most columns are converted by Arrow's `to_pylist`, which takes 10 to 20 ns a value. Dates and timestamps are computed
here from the days or microseconds since the epoch, as Arrow takes 0.7 microseconds for a date, and needs a time zone
library for timestamps.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import pyarrow
from opchain.runtime.errors import RecordSchemaError
from opchain.runtime.records.columns import Columns
from opchain.runtime.types.row import Row, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local date-times have no zone
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def records_of(batch: Any) -> Sequence[Row]:
    """The rows of a record batch: as `Columns`, unless it has no columns.

    Raises:
        RecordSchemaError: Python cannot represent a date or time.
    """
    names = list(batch.schema.names)
    columns = [_column(name, batch.column(number)) for number, name in enumerate(names)]
    if not columns:
        return rows_of(names, [()] * batch.num_rows)
    return Columns.of_fields(names, columns)


def values_of(array: Any) -> list[Any]:
    """The values of an array, None for null."""
    types = pyarrow().types
    for is_type, decode in (
        (types.is_timestamp, _timestamps),
        (types.is_date, _dates),
        (types.is_duration, _durations),
        (types.is_map, _maps),
        (types.is_list, _lists),
        (types.is_large_list, _lists),
        (types.is_struct, _structs),
        (types.is_dictionary, lambda encoded: values_of(encoded.dictionary_decode())),
    ):
        if is_type(array.type):
            return decode(array)
    found: list[Any] = array.to_pylist()
    return found


def _column(name: str, array: Any) -> list[Any]:
    try:
        return values_of(array)
    except (OverflowError, ValueError) as error:
        raise RecordSchemaError(
            f"column '{name}' of type {array.type} has a value that Python cannot represent "
            f"({error}): dates and "
            "times go from the year 1 to the year 9999"
        ) from error


def _counts(array: Any, unit: Any) -> list[int | None]:
    counts: list[int | None] = array.cast(unit).view(pyarrow().int64()).to_pylist()
    return counts


def _timestamps(array: Any) -> list[Any]:
    zone = array.type.tz
    counts = _counts(array, pyarrow().timestamp("us", tz=zone))
    epoch = EPOCH if zone is None else EPOCH_UTC
    return [None if each is None else epoch + timedelta(0, 0, each) for each in counts]


def _durations(array: Any) -> list[Any]:
    counts = _counts(array, pyarrow().duration("us"))
    return [None if each is None else timedelta(0, 0, each) for each in counts]


def _dates(array: Any) -> list[Any]:
    arrow = pyarrow()
    days = array.cast(arrow.date32()).view(arrow.int32()).to_pylist()
    from_ordinal = date.fromordinal
    return [None if day is None else from_ordinal(day + EPOCH_ORDINAL) for day in days]


def _lists(array: Any) -> list[Any]:
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    items = values_of(array.values.slice(first, offsets[-1] - first))
    return _cut(array, offsets, lambda start, stop: items[start - first : stop - first])


def _maps(array: Any) -> list[Any]:
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    size = offsets[-1] - first
    keys = values_of(array.keys.slice(first, size))
    values = values_of(array.items.slice(first, size))
    pairs = list(zip(keys, values, strict=True))
    return _cut(array, offsets, lambda start, stop: dict(pairs[start - first : stop - first]))


def _cut(array: Any, offsets: list[int], part: Any) -> list[Any]:
    ends = pairwise(offsets)
    if not array.null_count:
        return [part(start, stop) for start, stop in ends]
    valid = array.is_valid().to_pylist()
    return [
        part(start, stop) if is_there else None
        for (start, stop), is_there in zip(ends, valid, strict=True)
    ]


def _structs(array: Any) -> list[Any]:
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    columns = [values_of(column) for column in array.flatten()]
    rows: list[Any] = rows_of(names, zip(*columns, strict=True) if columns else [()] * len(array))
    if array.null_count:
        valid = array.is_valid().to_pylist()
        return [row if is_there else None for row, is_there in zip(rows, valid, strict=True)]
    return rows
