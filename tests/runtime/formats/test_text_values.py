from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal
from typing import Any

import pytest
from format_values import SCALARS
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Instant, Types
from opchain.runtime.formats.text_values import is_bytes, text_reader, text_writer


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize("name", SCALARS)
def test_values_are_written_as_text_and_read_back(name: str, data: st.DataObject) -> None:
    kind, values = SCALARS[name]
    read, write = text_reader(kind), text_writer(kind)
    assert read is not None
    assert write is not None
    value = data.draw(values)
    assert read(write(value)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("boolean", "yes"),
        ("byte", "128"),
        ("int", "2147483648"),
        ("long", "1_000"),
        ("long", "1.0"),
        ("double", "1_0"),
        ("decimal", "NaN"),
        ("decimal", "x"),
        ("date", "2024-02-30"),
        ("timestamp", "yesterday"),
        ("bytes", "?"),
    ],
)
def test_text_that_is_not_a_value_is_refused(name: str, text: str) -> None:
    read = text_reader(SCALARS[name][0])
    assert read is not None
    with pytest.raises(ValueError, match=r".+"):
        read(text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("boolean", " TRUE ", True),
        ("int", " 7 ", 7),
        ("double", "1e3", 1000.0),
        ("time", "01:02:03.5", time(1, 2, 3, 500_000)),
        ("timestamp", "2024-01-02 03:04:05.0", datetime.fromisoformat("2024-01-02T03:04:05")),
        (
            "timestamp",
            "2024-01-02T03:04:05.123456789",
            datetime.fromisoformat("2024-01-02T03:04:05.123456"),
        ),
        ("instant", "1970-01-01T00:00:01.25Z", Instant(1, 250_000_000)),
    ],
)
def test_text_is_read_as_in_java(name: str, text: str, value: Any) -> None:
    read = text_reader(SCALARS[name][0])
    assert read is not None
    assert read(text) == value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("int", True, "1"),
        ("decimal", 0.12345678901, "0.12345678901"),
        ("decimal", 5, "5"),
        ("decimal", Decimal("1E+2"), "100"),
    ],
)
def test_values_that_can_be_converted_are_written(name: str, value: Any, text: str) -> None:
    write = text_writer(SCALARS[name][0])
    assert write is not None
    assert write(value) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [("int", "7"), ("long", 1.5), ("decimal", "x"), ("decimal", Decimal("NaN"))],
)
def test_values_that_could_not_be_read_back_are_not_written(name: str, value: Any) -> None:
    write = text_writer(SCALARS[name][0])
    assert write is not None
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        write(value)


def test_nested_types_have_no_text_form() -> None:
    assert text_reader(Types.LIST(Types.INT())) is None
    assert text_writer(Types.LIST(Types.INT())) is None
    assert not is_bytes(Types.PRIMITIVE_ARRAY(Types.INT()))
