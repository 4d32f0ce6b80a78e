from __future__ import annotations

from typing import Any

import pytest
from opchain.compiler.codegen.names import Names, readable
from opchain.datastream import MapFunction


class ParseLine(MapFunction[str, str]):
    def map(self, value: str) -> str:
        return value


def parse(line: str) -> str:
    return line


def value(line: str) -> str:
    return line


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (parse, "parse"),
        (lambda x: x, "flat_map"),
        (ParseLine(), "parse_line"),
        (value, "value_fn"),
        (str.upper, "upper"),
        (None, "flat_map"),
    ],
)
def test_a_name_is_the_user_s_where_there_is_one(function: Any, name: str) -> None:
    assert readable(function, "flat map") == name


@pytest.mark.parametrize(
    ("kind", "name"), [("2nd", "call_2nd"), ("class", "call_class"), ("é", "call"), ("", "call")]
)
def test_what_is_no_identifier_becomes_one(kind: str, name: str) -> None:
    assert readable(None, kind) == name


def test_a_name_stands_for_one_thing() -> None:
    names = Names()
    assert names.bind("parse_1", "call", 1) == names.bind("parse_1", "call", 1)
    with pytest.raises(AssertionError, match="parse_1 stands for"):
        names.bind("parse_1", "call", 2)
