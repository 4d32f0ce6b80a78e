"""Values of a declared type are converted as by the coders of PyFlink."""

from __future__ import annotations

import datetime as dt
import gzip
import importlib.util
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row, RowKind, Types
from opchain.runtime.types.coders import coder_converter, fitting_each, form_test
from opchain.runtime.types.collection_values import converter_to
from opchain.runtime.types.time_types import ZONED_TIMESTAMP

if TYPE_CHECKING:
    from types import ModuleType


def recorded_values() -> ModuleType:
    path = Path(__file__).parents[2] / "differential" / "coder_values.py"
    spec = importlib.util.spec_from_file_location("coder_values", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LENIENT = ("ROW(INT, INT)", "ROW(a STRING, b INT)")
"""A row may be given as a tuple, list, mapping or object, too."""


def test_values_are_converted_as_by_the_coders_of_pyflink() -> None:
    module = recorded_values()
    expected = json.loads(gzip.decompress(module.RECORDED.read_bytes()))

    def of_opchain(record_type: Any) -> Any:
        convert = coder_converter(record_type) or (lambda value: value)
        return lambda value: module.outcome(convert, value)

    found = module.results("opchain", of_opchain)
    assert len(found) == len(expected) > 1_000
    different = {
        what: (found[what], wanted) for what, wanted in expected.items() if found[what] != wanted
    }
    lenient = {
        w for w, (_, wanted) in different.items() if wanted == "FAIL" and w.endswith(LENIENT)
    }
    assert {what: pair for what, pair in different.items() if what not in lenient} == {}


@pytest.mark.parametrize(
    ("record_type", "value", "text"),
    [
        (Types.INT(), 2**40, r"1099511627776 does not fit into INT, which holds -2147483648 to"),
        (Types.INT(), "text", r"'text' is declared as INT, and is a str; convert it to a number"),
        (Types.INT(), None, r"None is declared as INT, and is a NoneType"),
        (Types.STRING(), 5, r"5 is declared as STRING, and is an int; convert it to a str"),
        (Types.BOOLEAN(), -1, r"-1 is not a BOOLEAN"),
        (Types.DOUBLE(), "1.5", r"'1.5' is declared as DOUBLE"),
        (Types.TUPLE([Types.INT()]), [1], r"\[1\] is declared as TUPLE, and is a list"),
        (Types.TUPLE([Types.INT(), Types.INT()]), (1,), r"has 1 fields; its type has 2"),
        (Types.ROW([Types.INT(), Types.INT()]), Row(1), r"has 1 fields; its type has 2"),
        (Types.LIST(Types.INT()), (1,), r"\(1,\) is declared as LIST, and is a tuple"),
        (Types.LIST(Types.INT()), [None], r"None is declared as INT"),
        (Types.MAP(Types.STRING(), Types.INT()), [1], r"declared as MAP, and is a list"),
        (
            Types.SQL_DATE(),
            "2020-01-01",
            r"declared as SQL_DATE, and is a str; convert it to a date",
        ),
        (Types.SQL_TIME(), 1, r"declared as SQL_TIME, and is an int"),
        (Types.SQL_TIMESTAMP(), dt.date(2020, 1, 1), r"declared as SQL_TIMESTAMP, and is a date"),
        (ZONED_TIMESTAMP, dt.date(2020, 1, 1), r"declared as SQL_TIMESTAMP, and is a date"),
        (Types.INSTANT(), 1, r"declared as INSTANT, and is an int; convert it to an Instant"),
    ],
)
def test_the_error_names_a_wrong_value(record_type: Any, value: Any, text: str) -> None:
    convert = coder_converter(record_type)
    assert convert is not None
    with pytest.raises((TypeError, OverflowError, IndexError), match=text):
        convert(value)


@pytest.mark.parametrize(
    ("record_type", "value"),
    [
        (Types.INT(), 5),
        (Types.STRING(), "a"),
        (Types.DOUBLE(), 0.5),
        (Types.BOOLEAN(), True),
        (Types.BIG_DEC(), Decimal("1.50")),
        (Types.BIG_INT(), 2**100),
        (Types.SQL_DATE(), dt.date(1930, 1, 1)),
        (Types.SQL_TIMESTAMP(), dt.datetime(1930, 1, 1, 1, 2, 3, 4000)),  # noqa: DTZ001
        (ZONED_TIMESTAMP, dt.datetime(1930, 1, 1, 1, 2, 3, 4, tzinfo=dt.timezone.utc)),
    ],
)
def test_a_value_that_already_has_its_form_is_the_same_object(record_type: Any, value: Any) -> None:
    convert = coder_converter(record_type)
    assert convert is not None
    assert convert(value) is value


def test_a_decimal_has_no_negative_zero() -> None:
    for convert in (coder_converter(Types.BIG_DEC()), converter_to(Types.BIG_DEC())):
        assert convert is not None
        assert repr(convert(Decimal("-0.00"))) == "Decimal('0.00')"


def test_a_row_keeps_its_row_kind() -> None:
    convert = coder_converter(Types.ROW_NAMED(["a"], [Types.INT()]))
    assert convert is not None
    row = convert(Row.of_kind(RowKind.DELETE, 1.5, "dropped"))
    assert (row.get_row_kind(), row.a, len(row)) == (RowKind.DELETE, 1, 1)


def test_records_of_pickled_types_are_not_converted() -> None:
    assert coder_converter(None) is None
    assert coder_converter(Types.PICKLED_BYTE_ARRAY()) is None
    assert form_test(Types.PICKLED_BYTE_ARRAY(), "v", None) == ""


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


@pytest.mark.parametrize(
    ("record_type", "known", "test"),
    [
        (Types.STRING(), str, ""),
        (Types.STRING(), None, "v.__class__ is str"),
        (Types.LONG(), int, ""),
        (Types.INT(), int, "-2147483648 <= v <= 2147483647"),
        (Types.BYTE(), None, "v.__class__ is int and -128 <= v <= 127"),
        (Types.DOUBLE(), float, ""),
        (Types.DOUBLE(), int, "v.__class__ is float"),
        (Types.FLOAT(), float, None),
        (PAIR, (str, int), ""),
        (PAIR, (str, None), None),
        (PAIR, (str, int, int), None),
        (Types.ROW([Types.INT()]), None, None),
    ],
)
def test_form_test_omits_checks_that_are_known_to_pass(
    record_type: Any, known: Any, test: str | None
) -> None:
    found = form_test(record_type, "v", known)
    if test is not None or found is None:
        assert found == test
        return
    convert = coder_converter(record_type)
    assert convert is not None
    for value in (("a", 1), ("a", 1.5), ("a",), ("a", 1, 2)):
        if isinstance(known, tuple) and len(known) == 2 and len(value) != 2:
            continue  # the type that is known not to occur
        if eval(found, {"v": value}):  # noqa: S307 - evaluates generated code
            assert convert(value) == value


@pytest.mark.parametrize(
    "record_type",
    [
        *(Types.LONG(), Types.INT(), Types.STRING(), Types.FLOAT(), Types.BOOLEAN(), PAIR),
        *(Types.TUPLE([Types.LONG(), PAIR]), Types.ROW([Types.LONG()]), Types.LIST(Types.INT())),
    ],
    ids=repr,
)
def test_a_list_passes_the_form_test_if_all_elements_can_be_converted(record_type: Any) -> None:
    convert = coder_converter(record_type)
    assert convert is not None
    fit = fitting_each(record_type)
    values = [1, 2**40, 2**70, True, 1.5, "a", None, ("a", 1), ("a",), (1, ("a", 2)), Row(1), [1]]
    values += [(2**70, ("a", 1)), Row(2**70), ["x"]]
    good = [value for value in values if value is not None and converts(convert, value)]
    assert fit([])
    assert good
    assert fit(good)
    for value in values:
        assert fit([*good, value]) == (value in good)


def converts(convert: Any, value: Any) -> bool:
    try:
        convert(value)
    except Exception:  # noqa: BLE001 - any error means that the value cannot be converted
        return False
    return True
