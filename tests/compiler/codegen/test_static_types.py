"""Types that the compiler infers are correct, and it infers no type for values that could have any."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Duration
from opchain.compiler.codegen.static_types import (
    IterableOf,
    ResultOf,
    TupleOf,
    is_frozen,
    item_type,
    never_raises,
    records_of,
    type_of,
)
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.runtime.connectors.collection import CollectionSource, NumberSequenceSource
from opchain.runtime.connectors.file_source import TextLineSource
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from pathlib import Path

NAMES: dict[str, Any] = {"i": int, "f": float, "s": str, "b": bool, "p": TupleOf((str, None))}
GENERATOR = type_of(ast.parse("(c + c for c in s)", mode="eval").body, {**NAMES, "c": str})
NAMES |= {name: ResultOf(name) for name in ("findall", "split", "sub")}
VALUES: dict[str, Any] = {"i": 7, "f": 0.5, "s": "a b", "b": True, "p": ("a", [1])}
VALUES |= {name: getattr(re, name) for name in ("findall", "split", "sub")}


class OwnNumbers(NumberSequenceSource):
    """Could read anything."""


def known(text: str) -> Any:
    return type_of(ast.parse(text, mode="eval").body, NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            ("i * 3 + 1", int),
            ("i // 2 % 5", int),
            ("i ^ 255", int),
            ("1.5", float),
            ("None", type(None)),
        ),
        *(("i / 2", float), ("i << 2", None), ("i ** -1", None), ("b + b", None), ("i + b", None)),
        *(("f * 2 - i", float), ("f % 2", None), ("s + s", str), ("s * 2", None), ("s % i", None)),
        *(("s.lower()", str), ("s.split()", IterableOf(str)), ("s.split(sep=i)", None)),
        *(
            ("s.encode()", None),
            ("p[1].split()", None),
            ("len(p)", int),
            ("range(i)", IterableOf(int)),
        ),
        *(
            ("int(s)", int),
            ("abs(i)", int),
            ("abs(b)", None),
            ("max(i, 2)", int),
            ("min(i, f)", None),
        ),
        *(("not p", bool), ("-i", int), ("-b", None), ("~i", None), ("round(f)", int)),
        *(("f'{i}'", None), ("f'{i} {s}'", str), ("s[0]", str), ("s.split()[0]", str)),
        *(("s.split()[1:]", IterableOf(str)), ("unknown", None), ("lambda: i", None)),
        *(("(i, s)", TupleOf((int, str))), ("(i, unknown)", TupleOf((int, None)))),
        *(("p[0]", str), ("p[1]", None), ("p[-1]", None), ("p[2]", None), ("p[True]", None)),
        *(
            ("i if s else 2", int),
            ("i if s else s", None),
            ("[i, 1]", IterableOf(int)),
            ("[]", None),
        ),
        *(("[i, s]", None), ("i > 2", bool), ("p > i", None), ("p is i", bool)),
        *(("s and i", None), ("i and 2", int)),
        *(("findall('a( b)?', s)", IterableOf(str)), ("findall('(a)( b)', s)", None)),
        *(("split(' ', s)", IterableOf(str)), ("split('( )|c', s)", None)),
        *(("sub('(a)', s, s)", str), ("sub('a', i, s)", None), ("sub(s, s, s)", None)),
        *(("findall('(', s)", None), ("findall('a', s, i)", None), ("findall('a', i)", None)),
    ],
)
def test_type_of_infers_the_type_of_an_expression(text: str, expected: Any) -> None:
    assert known(text) == expected


def holds(value: Any, kind: Any) -> bool:
    """Whether a value is of a type that is said to be known."""
    if isinstance(kind, TupleOf):
        same = type(value) is tuple and len(value) == len(kind.items)
        return same and all(map(holds, value, kind.items))
    if isinstance(kind, IterableOf):
        return all(holds(item, kind.item) for item in value)
    return kind is None or type(value) is kind


leaves = st.sampled_from(["i", "f", "s", "b", "p", "2", "1.5", "'x'", "p[0]", "i", "s"])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "/"]), inner
        ).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]}, {parts[1]})"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]} if i else {parts[1]})"),
        inner.map(lambda text: f"({text}).split()"),
        st.tuples(
            st.sampled_from(["int", "float", "bool", "abs", "round", "str", "-", "not "]), inner
        ).map(lambda parts: f"({parts[0]}({parts[1]}))"),
        st.tuples(inner, st.sampled_from(["<", "==", "is", "and"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        inner.map(lambda text: f"({text})[1:]"),
        inner.map(lambda text: f"({text})[1]"),
        inner.map(lambda text: f"findall('[a-z]', {text})"),
        inner.map(lambda text: f"sub('a', {text}, s)"),
    ),
    max_leaves=6,
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(expressions)
def test_inferred_types_and_never_raises_hold_for_random_expressions(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    try:
        value = eval(text, dict(VALUES))  # noqa: S307 - our own text
    except (TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError):
        assert not never_raises(node, NAMES)
        return
    assert holds(value, type_of(node, NAMES))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("i + 1", True), ("i - i * 2", True), ("f + 1.5", True), ("s + s", True), ("i", True)),
        *(("len(s)", True), ("i % 7", True), ("i % 0", False), ("s.split()", True), ("p[0]", True)),
        *(("s < s", True), ("s < i", False), ("u or i", False), ("i or u", True), ("u is i", True)),
        *(
            ("i + f", False),
            ("i // i", False),
            ("s - s", False),
            ("s * i", False),
            ("len(i)", False),
            ("len(g)", False),
        ),
    ],
)
def test_never_raises_recognizes_safe_operations_of_known_types(text: str, expected: bool) -> None:
    assert GENERATOR is not None
    assert never_raises(ast.parse(text, mode="eval").body, {**NAMES, "g": GENERATOR}) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (NumberSequenceSource(1, 2), int),
        (TextLineSource("lines.txt"), str),
        (OwnNumbers(1, 2), None),
        (CollectionSource([1]), None),
    ],
)
def test_record_types_are_known_only_for_built_in_sources(source: Any, expected: Any) -> None:
    assert records_of(specs.SourceSpec(source)).type is expected


def test_a_filter_function_tells_no_record_type() -> None:
    assert records_of(specs.FilterSpec(bool)).type is None


@pytest.mark.parametrize(
    ("kind", "items", "frozen"),
    [
        (int, None, True),
        (str, str, True),
        (TupleOf((int, int)), int, True),
        (TupleOf((int, str)), None, True),
        (TupleOf((int, None)), None, False),
        (IterableOf(int), int, False),
        (None, None, False),
    ],
)
def test_types_know_whether_they_are_immutable_and_their_item_type(
    kind: Any, items: Any, frozen: bool
) -> None:
    assert item_type(kind) == items
    assert is_frozen(kind) is frozen


def test_watched_text_files_have_records_of_type_str(tmp_path: Path) -> None:
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    watched = files.monitor_continuously(Duration.of_seconds(1)).build()
    assert records_of(specs.SourceSpec(watched)).type is str
