from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.types import Types

PRIMITIVES = {
    "boolean[]": Types.BOOLEAN(),
    "byte[]": Types.BYTE(),
    "short[]": Types.SHORT(),
    "int[]": Types.INT(),
    "long[]": Types.LONG(),
    "float[]": Types.FLOAT(),
    "double[]": Types.DOUBLE(),
    "char[]": Types.CHAR(),
}


@pytest.mark.parametrize(("java_class", "element_type"), PRIMITIVES.items(), ids=PRIMITIVES)
def test_every_primitive_type_has_two_array_types(java_class: str, element_type: Any) -> None:
    assert PrimitiveArrayTypeInfo(element_type).java_class == java_class
    assert BasicArrayTypeInfo(element_type).java_class == f"{element_type.java_class}[]"


@pytest.mark.parametrize(
    ("make", "element_type"),
    [
        (PrimitiveArrayTypeInfo, Types.STRING()),
        (PrimitiveArrayTypeInfo, Types.BIG_INT()),
        (PrimitiveArrayTypeInfo, Types.LIST(Types.INT())),
        (BasicArrayTypeInfo, Types.BIG_DEC()),
        (BasicArrayTypeInfo, Types.ROW([])),
    ],
)
def test_an_array_type_refuses_other_elements(make: Any, element_type: Any) -> None:
    with pytest.raises(
        TypeError, match=r"has no elements of type .*, only of (STRING, )?BYTE, BOOLEAN, SHORT, INT"
    ):
        make(element_type)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrimitiveArrayTypeInfo(int),  # type: ignore[arg-type]
        lambda: BasicArrayTypeInfo(str),  # type: ignore[arg-type]
        lambda: ObjectArrayTypeInfo(None),  # type: ignore[arg-type]
        lambda: ListTypeInfo("STRING"),  # type: ignore[arg-type]
        lambda: MapTypeInfo(str, Types.INT()),  # type: ignore[arg-type]
        lambda: MapTypeInfo(Types.INT(), str),  # type: ignore[arg-type]
    ],
)
def test_an_argument_that_is_not_a_type_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"takes types such as Types\.STRING\(\), not"):
        make()


def test_the_element_type_of_a_list_has_two_attributes() -> None:
    made = ListTypeInfo(Types.INT())
    assert made.elem_type is made.element_type


def test_container_types_do_not_convert_records() -> None:
    for made in (ListTypeInfo(Types.SQL_DATE()), MapTypeInfo(Types.INT(), Types.INT())):
        assert not made.need_conversion()
