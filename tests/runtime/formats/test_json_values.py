from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from format_values import NESTED, SCALARS, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.json_values import from_json, to_json

if TYPE_CHECKING:
    from opchain.runtime.types.type_information import TypeInformation

ROW_TYPE, ROWS = rows({**SCALARS, **NESTED})


@settings(max_examples=20)
@given(ROWS)
def test_rows_are_converted_to_json_and_back(records: list[Row]) -> None:
    texts = to_json(ROW_TYPE)(records)
    parsed = [json.loads(text, parse_float=Decimal) for text in texts]
    assert from_json(ROW_TYPE)(parsed) == records


@given(st.lists(st.none() | NESTED["row"][1], max_size=5))
def test_null_rows_are_kept(records: list[Row | None]) -> None:
    kind = NESTED["row"][0]
    assert from_json(kind)([json.loads(text) for text in to_json(kind)(records)]) == records


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Types.STRING(), 5, "5"),
        (Types.STRING(), True, "true"),
        (Types.INT(), "5", 5),
        (Types.INT(), 5.0, 5),
        (Types.DOUBLE(), 5, 5.0),
        (Types.DOUBLE(), "NaN", pytest.approx(float("nan"), nan_ok=True)),
        (Types.BIG_DEC(), 5, Decimal(5)),
        (Types.BIG_DEC(), "5.10", Decimal("5.10")),
        (Types.BOOLEAN(), "true", True),
        (Types.PICKLED_BYTE_ARRAY(), {"a": []}, {"a": []}),
    ],
)
def test_values_of_similar_types_are_converted(
    kind: TypeInformation[Any], value: Any, expected: Any
) -> None:
    assert from_json(kind)([value, None]) == [expected, None]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Types.INT(), 5.5),
        (Types.INT(), 1 << 31),
        (Types.INT(), True),
        (Types.INT(), [1]),
        (Types.BOOLEAN(), 1),
        (Types.LIST(Types.INT()), 5),
        (Types.MAP(Types.STRING(), Types.INT()), []),
        (NESTED["row"][0], [1, "a"]),
        (Types.SQL_DATE(), 5),
    ],
)
def test_values_of_other_types_are_refused(kind: TypeInformation[Any], value: Any) -> None:
    with pytest.raises(ValueError, match=r" is not | has more than "):
        from_json(kind)([value])


def test_a_missing_field_is_null_or_an_error() -> None:
    kind = NESTED["row"][0]
    assert from_json(kind)([{"y": "a"}]) == [Row(x=None, y="a")]
    with pytest.raises(ValueError, match="there is no field 'x'"):
        from_json(kind, needs_all_fields=True)([{"y": "a"}])
    one = Types.ROW_NAMED(["x"], [Types.LONG()])
    assert from_json(one)([{"x": 1}, {}]) == [Row(x=1), Row(x=None)]


def test_the_error_names_a_wrong_field() -> None:
    with pytest.raises(ValueError, match=r"field 'x': \[1\] is no"):
        from_json(NESTED["row"][0])([{"x": [1]}])


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="JSON does not support TupleTypeInfo"):
        from_json(Types.TUPLE([Types.INT()]))
    with pytest.raises(UnsupportedFeatureError, match="JSON does not support TupleTypeInfo"):
        to_json(Types.TUPLE([Types.INT()]))
    with pytest.raises(
        UnsupportedFeatureError, match="JSON does not support map keys of type ListTypeInfo"
    ):
        to_json(Types.MAP(Types.LIST(Types.INT()), Types.INT()))


def test_a_decimal_with_a_huge_exponent_is_malformed() -> None:
    for kind in (Types.INT(), Types.BIG_INT()):
        with pytest.raises(ValueError, match=r"1E\+99999 has more than 4300 digits"):
            from_json(kind)([Decimal("1e99999")])
    assert from_json(Types.BIG_INT())([Decimal("1e30")]) == [10**30]


def test_a_float_has_32_bits_and_is_written_with_the_digits_that_identify_it() -> None:
    read, write = from_json(Types.FLOAT()), to_json(Types.FLOAT())
    values = read([0.1, "0.2", 3, 1e300, None])
    assert values == [0.10000000149011612, 0.20000000298023224, 3.0, math.inf, None]
    assert write(values) == ["0.1", "0.2", "3.0", '"Infinity"', "null"]
