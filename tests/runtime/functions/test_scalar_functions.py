"""Scalar functions; the expected values are those of Flink."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import pytest

from opchain.runtime.functions.scalar_functions import Months, concat_ws, steps_of
from opchain.runtime.functions.sql import FUNCTIONS

AT = datetime(2020, 5, 6, 7, 8, 9, 10_000)  # noqa: DTZ001 - TIMESTAMP has no zone


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("lpad", ("hi", 4, "??"), "??hi"),
        ("lpad", ("hi", 1, "?"), "h"),
        ("lpad", ("hi", -1, "?"), None),
        ("rpad", ("hi", 5, "ab"), "hiaba"),
        ("repeat", ("ab", 2), "abab"),
        ("repeat", ("ab", -1), ""),
        ("position", ("hello", "l"), 3),
        ("position", ("hello", "l", 4), 4),
        ("position", ("hello", "x"), 0),
        ("initcap", ("hello wORLD-x1",), "Hello World-X1"),
        ("chr_", (97,), "a"),
        ("chr_", (-1,), None),
        ("regexp_replace", ("foobar", "oo|ar", ""), "fb"),
        ("regexp_replace", ("a1!", "([a-z])([0-9])", "$2$1"), "$2$1!"),
        ("regexp_extract", ("foothebar", "foo(.*?)(bar)", 2), "bar"),
        ("regexp_extract", ("foo", "x(.*)", 1), None),
        ("hex_", (20,), "14"),
        ("hex_", ("hello",), "68656C6C6F"),
        ("bin_", (12,), "1100"),
        ("sign", (-3,), -1),
        ("log", (2, 8), 3.0),
        ("log", (0,), -math.inf),
        ("power", (2, 10), 1024.0),
        ("greatest", (1, None, 2), None),
        ("cardinality", ([1, 2],), 2),
        ("element", ([],), None),
        ("array_contains", ([1, 2], 2), True),
        ("json_value", ('{"a": {"b": [1, true]}}', "$.a.b[1]"), "true"),
        ("json_value", ('{"a": {"b": 1}}', "$.a"), None),
        ("json_value", ("no json", "$.a"), None),
        ("json_query", ('{"a": [1, {"b": "é"}]}', "lax $.a"), '[1,{"b":"é"}]'),
        ("json_query", ('{"a": 1}', "$.a"), None),
        ("json_exists", ('{"a": null}', "$.a"), False),
        ("json_exists", ("{}", "$.a"), False),
        ("is_json", ("{", "VALUE"), False),
        ("distinct", (None, None), False),
        ("distinct", (None, 1), True),
        ("timestamp_add", ("MONTH", 1, date(2020, 1, 31)), date(2020, 2, 29)),
        ("timestamp_diff", ("DAY", date(2020, 1, 1), date(2020, 3, 1)), 60),
        ("timestamp_diff", ("MONTH", date(2020, 1, 31), date(2020, 2, 29)), 1),
        ("timestamp_diff", ("YEAR", date(2020, 5, 6), date(2018, 5, 6)), -2),
        ("timestamp_diff", ("HOUR", AT, date(2020, 5, 6)), -7),
        ("floor_of_time", ("HOUR", AT), AT.replace(minute=0, second=0, microsecond=0)),
        ("floor_of_time", ("QUARTER", date(2020, 5, 6)), date(2020, 4, 1)),
        ("ceil_of_time", ("DAY", AT), datetime(2020, 5, 7)),  # noqa: DTZ001
        ("ceil_of_time", ("YEAR", date(2020, 1, 1)), date(2020, 1, 1)),
        ("part", ("DOW", date(2020, 5, 6)), 4),
        ("part", ("DOY", date(2020, 2, 1)), 32),
        ("part", ("WEEK", date(2020, 5, 6)), 19),
    ],
)
def test_scalar_functions_return_the_values_of_flink(
    function: str, arguments: tuple[Any, ...], expected: Any
) -> None:
    assert FUNCTIONS[function](*arguments) == expected


def test_mathematical_functions_return_nan_and_infinity_as_in_java() -> None:
    assert math.isnan(FUNCTIONS["sqrt"](-1))
    assert FUNCTIONS["exp"](1000) == math.inf


def test_element_refuses_an_array_of_several_elements() -> None:
    with pytest.raises(ValueError, match="an array of one element, and got 2"):
        FUNCTIONS["element"]([1, 2])


def test_concat_ws_skips_null_texts() -> None:
    assert concat_ws("-", "a", None, "b") == "a-b"
    assert concat_ws(None, "a") is None


def test_adding_months_stays_within_the_month() -> None:
    assert date(2021, 3, 31) - Months(1) == date(2021, 2, 28)


@pytest.mark.parametrize("path", ["a", "$.a[*]", "$..a", "$.a[?(@.b)]"])
def test_json_paths_with_unsupported_steps_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="has steps other than"):
        steps_of(path)
