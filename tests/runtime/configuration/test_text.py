"""Values as text; the expected texts were printed by Configuration.toMap of Flink 2.3."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.configuration.options import MemorySize
from opchain.runtime.configuration.text import (
    parse_boolean,
    parse_decimal,
    parse_integer,
    parse_list,
    parse_map,
    to_text,
)
from opchain.runtime.time import Duration
from opchain.runtime.types.row import RowKind

WRITTEN = [
    ("hello", "hello"),
    (True, "true"),
    (False, "false"),
    (5, "5"),
    (Duration.of_millis(61_000), "61 s"),
    (MemorySize.of_mebi_bytes(64), "64 mb"),
    (RowKind.DELETE, "DELETE"),
    (b"\x01\x02\xfd", "!!binary |-\n  AQL9"),
    (b"", '!!binary ""'),
    (["a;b", "c: d", "e'f", "x, y"], "[a;b, 'c: d', e'f, 'x, y']"),
    ({"k": "v,w"}, "{k: 'v,w'}"),
    ([1, ["a", "b"]], "[1, [a, b]]"),
    ([], "[]"),
    ({}, "{}"),
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1e-3, "0.001"),
    (9.99e-4, "9.99E-4"),
    (1e-7, "1.0E-7"),
    (5e-324, "4.9E-324"),
    (-3e22, "-3.0E22"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (12345678.9, "1.23456789E7"),
    (1e16, "1.0E16"),
    (1e22, "1.0E22"),
    (-1.5, "-1.5"),
    (-2.5e9, "-2.5E9"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
]


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_values_are_written_as_flink_does(value: object, text: str) -> None:
    assert to_text(value) == text


PLAIN = ["-a", "a#b", "it's", "é", "日本", "2020-01-01", "yes", "on", "=", "a;b"]
QUOTED = [
    *("1", "1.5", "0x1F", "true", "null", "~", "-", "?", "? x", "", " x", "x ", "a #b", "a:b"),
    *("a: b", "x:", "http://h:1/p", "a, b", "x,y", "[x]", "{x}", "x]", "*a", "&a", "!a", "%a"),
    *("@a", "`a", "|", "> x"),
]


@pytest.mark.parametrize("item", PLAIN)
def test_plain_list_items_are_not_quoted(item: str) -> None:
    assert to_text([item]) == f"[{item}]"


@pytest.mark.parametrize("item", QUOTED)
def test_list_items_that_yaml_would_misread_are_quoted(item: str) -> None:
    assert to_text([item]) == f"['{item}']"


def test_quotes_are_doubled_and_control_characters_escaped() -> None:
    assert to_text(["'q'"]) == "['''q''']"
    assert to_text(["a\nb", "a\tb"]) == '["a\\nb", "a\\tb"]'


LISTS = {
    "": [],
    "[]": [],
    "a": ["a"],
    "a;b": ["a", "b"],
    " a ; b ": ["a", "b"],
    "'a;b';c": ["a;b", "c"],
    "'it''s';x": ["it's", "x"],
    "it's;x": ["it's", "x"],
    "it:'s;x": ["it:'s", "x"],
    "[a, b]": ["a", "b"],
    "[ 'a', \"b c\", 3 ]": ["a", "b c", "3"],
    "[\"a\\nb\", 'c, d']": ["a\nb", "c, d"],
    "- a\n- 'b: c'\n": ["a", "b: c"],
    "[a": ["[a"],
}


@pytest.mark.parametrize(("text", "items"), LISTS.items(), ids=map(repr, LISTS))
def test_lists_are_read_in_every_format_of_flink(text: str, items: list[str]) -> None:
    assert parse_list(text) == items


MAPS = {
    "": {},
    "{}": {},
    "a:b": {"a": "b"},
    "a:b,c:d": {"a": "b", "c": "d"},
    "{a: b, c: d}": {"a": "b", "c": "d"},
    "'a:x':b": {"a:x": "b"},
    "a:'b,c'": {"a": "b,c"},
    "url:http://h": {"url": "http://h"},
}


@pytest.mark.parametrize(("text", "entries"), MAPS.items(), ids=map(repr, MAPS))
def test_maps_are_read_in_every_format_of_flink(text: str, entries: dict[str, str]) -> None:
    assert parse_map(text) == entries


ITEM = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(ITEM, min_size=1))
def test_a_written_list_is_read_back(items: list[str]) -> None:
    assert parse_list(to_text(items)) == items


@given(st.dictionaries(ITEM, ITEM))
def test_a_written_map_is_read_back(entries: dict[str, str]) -> None:
    assert parse_map(to_text(entries)) == entries


@given(st.floats(allow_nan=False))
def test_a_written_number_is_read_back(value: float) -> None:
    assert parse_decimal(to_text(value)) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("'a", "the quote at position 0"),
        ("[a, [b, c]]", r"'\[b' is not an item of a list"),
        ("[{a: b}]", "'{a: b}' is not an item of a list"),
        ("a;'b", "the quote at position 2"),
        ('["\\x"]', "has an unknown escape"),
    ],
)
def test_malformed_lists_are_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_list(text)


def test_a_map_entry_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="'b' in 'a:1,b' is not an entry"):
        parse_map("a:1,b")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False)])
def test_booleans_are_read_in_any_case(text: str, value: bool) -> None:
    assert parse_boolean(text) is value


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("+7", 7), ("-7", -7), ("007", 7)])
def test_whole_numbers_are_read(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [(" 7.5 ", 7.5), ("1e3", 1000.0), (".5", 0.5), ("2.", 2.0), ("1.5f", 1.5)]
)
def test_decimal_numbers_are_read_as_java_does(text: str, value: float) -> None:
    assert parse_decimal(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_boolean, text) for text in ("", " true", "1", "yes")),
        *((parse_integer, text) for text in ("", " 7", "7.0", "1_000", "0x1F", "true")),
        *((parse_decimal, text) for text in ("", "nan", "inf", "1_000", "1,5", "e3", ".")),
    ],
)
def test_texts_that_java_does_not_parse_are_refused(parse: object, text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse(text)  # type: ignore[operator]
