"""Rows with every type that formats know, drawn at random."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.runtime.formats.row_values import instant_of
from opchain.runtime.types.time_types import BigDecimalTypeInfo

if TYPE_CHECKING:
    from opchain.runtime.types.type_information import TypeInformation

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
INNER = Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.STRING()])

SCALARS: dict[str, tuple[TypeInformation[Any], st.SearchStrategy[Any]]] = {
    "boolean": (Types.BOOLEAN(), st.booleans()),
    "byte": (Types.BYTE(), st.integers(-(1 << 7), (1 << 7) - 1)),
    "short": (Types.SHORT(), st.integers(-(1 << 15), (1 << 15) - 1)),
    "int": (Types.INT(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": (Types.LONG(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "big_int": (Types.BIG_INT(), st.integers(-(10**37), 10**37)),
    "float": (Types.FLOAT(), st.floats(width=32, allow_nan=False)),
    "double": (Types.DOUBLE(), st.floats(allow_nan=False)),
    "decimal": (
        BigDecimalTypeInfo.of(12, 3),
        st.integers(-(10**12) + 1, 10**12 - 1).map(lambda units: Decimal(units).scaleb(-3)),
    ),
    "text": (Types.STRING(), TEXT),
    "date": (Types.SQL_DATE(), st.dates()),
    "time": (Types.SQL_TIME(), st.times()),
    "timestamp": (Types.SQL_TIMESTAMP(), st.datetimes()),
    "instant": (Types.INSTANT(), st.datetimes().map(instant_of)),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=5)),
}

NESTED: dict[str, tuple[TypeInformation[Any], st.SearchStrategy[Any]]] = {
    "list": (Types.LIST(Types.LONG()), st.lists(st.none() | SCALARS["long"][1], max_size=3)),
    "dates": (Types.LIST(Types.SQL_DATE()), st.lists(st.none() | st.dates(), max_size=3)),
    "map": (
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        st.dictionaries(TEXT, st.none() | SCALARS["double"][1], max_size=3),
    ),
    "row": (INNER, st.builds(lambda x, y: Row(x=x, y=y), SCALARS["long"][1], st.none() | TEXT)),
}


def rows(
    fields: dict[str, tuple[TypeInformation[Any], st.SearchStrategy[Any]]], *, nulls: bool = True
) -> tuple[Any, st.SearchStrategy[list[Row]]]:
    """A type of rows with these fields, and lists of such rows; fields may be None."""
    row_type = Types.ROW_NAMED(list(fields), [kind for kind, _ in fields.values()])
    values = {name: (st.none() | value) if nulls else value for name, (_, value) in fields.items()}
    return row_type, st.lists(st.fixed_dictionaries(values).map(lambda row: Row(**row)), max_size=9)
