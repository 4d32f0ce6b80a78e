"""Every factory of Types: its repr, its Java class, and equality by value."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from opchain.runtime.types.type_information import TypeInformation

FACTORIES: dict[str, tuple[Any, str, str]] = {
    "STRING": (Types.STRING, "String", "String"),
    "BYTE": (Types.BYTE, "Byte", "Byte"),
    "BOOLEAN": (Types.BOOLEAN, "Boolean", "Boolean"),
    "SHORT": (Types.SHORT, "Short", "Short"),
    "INT": (Types.INT, "Integer", "Integer"),
    "LONG": (Types.LONG, "Long", "Long"),
    "FLOAT": (Types.FLOAT, "Float", "Float"),
    "DOUBLE": (Types.DOUBLE, "Double", "Double"),
    "CHAR": (Types.CHAR, "Char", "Character"),
    "BIG_INT": (Types.BIG_INT, "BigInteger", "BigInteger"),
    "BIG_DEC": (Types.BIG_DEC, "BigDecimal", "BigDecimal"),
    "INSTANT": (Types.INSTANT, "Instant", "Instant"),
    "SQL_DATE": (Types.SQL_DATE, "DateTypeInfo", "Date"),
    "SQL_TIME": (Types.SQL_TIME, "TimeTypeInfo", "Time"),
    "SQL_TIMESTAMP": (Types.SQL_TIMESTAMP, "TimestampTypeInfo", "Timestamp"),
    "PICKLED_BYTE_ARRAY": (Types.PICKLED_BYTE_ARRAY, "PickledByteArrayTypeInfo", "Object"),
    "ROW": (lambda: Types.ROW([Types.INT()]), "RowTypeInfo(Integer)", "Row"),
    "ROW_NAMED": (
        lambda: Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
        "RowTypeInfo(a: Integer, b: String)",
        "Row",
    ),
    "TUPLE": (
        lambda: Types.TUPLE([Types.INT(), Types.LONG()]),
        "TupleTypeInfo(Integer, Long)",
        "Tuple",
    ),
    "PRIMITIVE_ARRAY": (
        lambda: Types.PRIMITIVE_ARRAY(Types.INT()),
        "PrimitiveArrayTypeInfo<Integer>",
        "int[]",
    ),
    "BASIC_ARRAY": (
        lambda: Types.BASIC_ARRAY(Types.STRING()),
        "BasicArrayTypeInfo<String>",
        "String[]",
    ),
    "OBJECT_ARRAY": (
        lambda: Types.OBJECT_ARRAY(Types.ROW([Types.INT()])),
        "ObjectArrayTypeInfo<RowTypeInfo(Integer)>",
        "Row[]",
    ),
    "MAP": (
        lambda: Types.MAP(Types.STRING(), Types.LIST(Types.INT())),
        "MapTypeInfo<String, ListTypeInfo<Integer>>",
        "Map",
    ),
    "LIST": (lambda: Types.LIST(Types.STRING()), "ListTypeInfo<String>", "List"),
}


def test_every_factory_is_tested() -> None:
    assert set(FACTORIES) == {name for name in vars(Types) if not name.startswith("_")}


@pytest.mark.parametrize(("make", "printed", "java_class"), FACTORIES.values(), ids=FACTORIES)
def test_a_type_is_printed_as_in_pyflink_and_compared_by_value(
    make: Any, printed: str, java_class: str
) -> None:
    made = make()
    assert repr(made) == str(made) == printed
    assert made.java_class == java_class
    assert made == make()
    assert hash(made) == hash(make())
    assert pickle.loads(pickle.dumps(made)) == made


def test_types_of_different_factories_differ() -> None:
    made = [make() for make, _, _ in FACTORIES.values()]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("make", [make for make, _, _ in FACTORIES.values()], ids=FACTORIES)
def test_types_have_no_java_object(make: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"TypeInfo\.get_java_type_info\(\)"):
        make().get_java_type_info()


@pytest.mark.parametrize("make", [make for make, _, _ in FACTORIES.values()], ids=FACTORIES)
def test_types_cannot_be_changed(make: Any) -> None:
    made: TypeInformation[Any] = make()
    for attribute in vars(made):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(made, attribute, None)
