"""Converts between rows and columns of values, a batch at a time, for all formats with fields."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from opchain.runtime.time import Instant
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_information import TypeInformation

if TYPE_CHECKING:
    from collections.abc import Iterable

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND = timedelta(seconds=1)


def type_of_field(declared: Any, where: str) -> TypeInformation[Any]:
    """The TypeInformation of an argument, which may be a type of `Types` or of `DataTypes`.

    Raises:
        TypeError: The argument is neither.
        ValueError: The argument is a row type without fields.
    """
    of_data_type = getattr(declared, "type_information", None)
    found = of_data_type() if callable(of_data_type) else declared
    if not isinstance(found, TypeInformation):
        raise TypeError(
            f"{where} got {declared!r}; it takes a type such as Types.INT() or DataTypes.INT()"
        )
    if isinstance(found, RowTypeInfo) and not found.field_types:
        raise ValueError(f"{where} got a row type without fields; declare at least one field")
    return found


def type_of_rows(declared: Any, where: str) -> RowTypeInfo:
    """The row type of an argument, which may be a type of `Types` or of `DataTypes`.

    Raises:
        TypeError: The argument is not a row type.
        ValueError: The row type has no fields.
    """
    found = type_of_field(declared, where)
    if not isinstance(found, RowTypeInfo):
        raise TypeError(
            f"{where} got {declared!r}; it takes a type of rows such as "
            "Types.ROW_NAMED(['id'], [Types.INT()]) or DataTypes.ROW([DataTypes.FIELD('id', DataTypes.INT())])"
        )
    return found


def columns_of_rows(row_type: RowTypeInfo, records: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The columns of records, which may be rows, tuples, lists or dicts.

    A Row that lacks one of the names is read by position, as PyFlink does with all Rows.

    Raises:
        ValueError: A record is not a row of the type, or has another number of fields.
    """
    names, width = row_type.get_field_names(), len(row_type.field_types)
    values_of = row_type.values_of
    rows = [
        record._values  # noqa: SLF001 - in the order asked for, without a copy
        if record.__class__ is Row
        and (
            record._fields is None
            or record._fields == names
            or not set(names) <= set(record._fields)
        )
        else values_of(record)
        for record in records
    ]
    for values in rows:
        if len(values) != width:
            raise ValueError(
                f"{values!r} has {len(values)} fields, but rows of this file have {width}: "
                f"{', '.join(names)}"
            )
    return list(zip(*rows, strict=True)) if rows else [()] * width


def instant_of(moment: datetime) -> Instant:
    """The Instant of a datetime. A datetime without zone is in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    seconds, rest = divmod(moment - _EPOCH, _SECOND)
    return Instant(seconds, rest.microseconds * 1000)


def moment_of(instant: Instant) -> datetime:
    """The datetime of an Instant, in UTC, with microseconds."""
    return _EPOCH + timedelta(seconds=instant.seconds, microseconds=instant.nanos // 1000)
