from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from opchain.common import Instant, Row, RowKind, Types
from opchain.runtime.types.printed_form import java_text_of, printer_of

DELETED = Row.of_kind(RowKind.DELETE, "a", 1.5)

# The results of Java's toString for these values.
FORMS: list[tuple[Any, Any, str]] = [
    (Types.STRING(), "a b", "a b"),
    (Types.LONG(), -3, "-3"),
    (Types.BOOLEAN(), True, "true"),
    (Types.BOOLEAN(), False, "false"),
    (Types.DOUBLE(), 1, "1.0"),
    (Types.DOUBLE(), 1e10, "1.0E10"),
    (Types.DOUBLE(), 1 / 3, "0.3333333333333333"),
    (Types.DOUBLE(), 1e-5, "1.0E-5"),
    (Types.DOUBLE(), float("inf"), "Infinity"),
    (Types.FLOAT(), 1 / 3, "0.33333334"),
    (Types.FLOAT(), 0.1, "0.1"),
    (Types.FLOAT(), 16777216, "1.6777216E7"),
    (Types.FLOAT(), float("nan"), "NaN"),
    (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
    (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", 1), "(a,1)"),
    (Types.TUPLE([Types.TUPLE([Types.BOOLEAN()]), Types.DOUBLE()]), ((True,), 2), "((true),2.0)"),
    (Types.ROW([Types.STRING(), Types.INT()]), Row("a", 1), "+I[a,1]"),
    (Types.ROW([Types.STRING(), Types.BOOLEAN()]), Row("a", True), "+I[a,True]"),
    (Types.ROW([Types.STRING(), Types.DOUBLE()]), DELETED, "-D[a,1.5]"),
    (Types.ROW([Types.STRING()]), ("a",), "+I[a]"),
    (Types.LIST(Types.BOOLEAN()), [True, False], "[true, false]"),
    (Types.BASIC_ARRAY(Types.LONG()), [1, 2], "[1, 2]"),
    (Types.MAP(Types.STRING(), Types.BOOLEAN()), {"a": True, "b": False}, "{a=true, b=false}"),
    (Types.SQL_DATE(), date(2026, 1, 2), "2026-01-02"),
    (Types.SQL_TIME(), time(3, 4, 5, 6000), "03:04:05"),
    (Types.INSTANT(), Instant.of_epoch_milli(60_000), "1970-01-01T00:01:00Z"),
    (Types.INSTANT(), Instant.of_epoch_milli(1234), "1970-01-01T00:00:01.234Z"),
    (Types.INSTANT(), Instant(0, 1), "1970-01-01T00:00:00.000000001Z"),
    (Types.TUPLE([Types.ROW([Types.INT(), Types.STRING()])]), (Row(1, None),), "(+I[1, null])"),
    (Types.SQL_TIMESTAMP(), datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05.0"),  # noqa: DTZ001
    (Types.SQL_TIMESTAMP(), datetime(2026, 1, 2, 3, 4, 5, 60000), "2026-01-02 03:04:05.06"),  # noqa: DTZ001
    (Types.PICKLED_BYTE_ARRAY(), ("a", True), "('a', True)"),
    (None, ("a", True), "('a', True)"),
    (None, None, "None"),
    (Types.STRING(), None, "null"),
    (Types.TUPLE([Types.STRING()]), (None,), "(null)"),
]


@pytest.mark.parametrize(("record_type", "value", "text"), FORMS)
def test_a_record_is_printed_as_by_java(record_type: Any, value: Any, text: str) -> None:
    assert printer_of(record_type)(value) == text


S, I, MOMENT = Types.STRING(), Types.INT(), datetime(2020, 1, 2, 3, 4, 5, 120000)  # noqa: DTZ001, E741

# The texts that PyFlink 2.3 writes into a file.
IN_FILES: list[tuple[Any, Any, str]] = [
    (
        Types.ROW([S, S, Types.BOOLEAN(), Types.DOUBLE(), Types.MAP(S, I)]),
        Row("a", None, True, 1e10, {"k": 1}),
        "+I[a, null, true, 1.0E10, {k=1}]",
    ),
    (Types.ROW([S, Types.ROW([I, S])]), Row("a", Row(1, "x")), "+I[a, +I[1, x]]"),
    (Types.ROW([S, Types.TUPLE([I, Types.DOUBLE()])]), Row("a", (1, 2.5)), "+I[a, (1,2.5)]"),
    (Types.ROW_NAMED(["n", "s"], [I, S]), Row(s="a", n=1), "+I[1, a]"),
    (
        Types.ROW([Types.LIST(I), Types.BASIC_ARRAY(S)]),
        Row([1, 2], ["a", None]),
        "+I[[1, 2], [a, null]]",
    ),
    (Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE())]), Row(b"ab"), "+I[[97, 98]]"),
    (
        Types.ROW([Types.SQL_TIME(), Types.SQL_TIMESTAMP()]),
        Row(MOMENT.time(), MOMENT),
        "+I[03:04:05, 2020-01-02 03:04:05.12]",
    ),
    (Types.ROW([Types.FLOAT(), Types.DOUBLE()]), Row(0.1, 0.1), "+I[0.1, 0.1]"),
    (Types.ROW([S, Types.DOUBLE()]), DELETED, "-D[a, 1.5]"),
    (replace(Types.ROW([S, Types.BOOLEAN()]), is_row_data=True), Row("", True), "+I(,true)"),
]


@pytest.mark.parametrize(("record_type", "value", "text"), IN_FILES)
def test_a_row_in_a_file_is_written_as_by_java(record_type: Any, value: Any, text: str) -> None:
    assert java_text_of(record_type)(value) == text
