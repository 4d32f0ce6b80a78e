from __future__ import annotations

import pickle

import pytest

from opchain.runtime.errors import (
    CheckpointError,
    GraphError,
    InternalError,
    KeyTypeError,
    StateError,
    StreamError,
    UnstableKeyError,
    UnsupportedFeatureError,
    short_repr,
)


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (GraphError, {StreamError}),
        (UnsupportedFeatureError, {GraphError, StreamError}),
        (KeyTypeError, {StreamError, TypeError}),
        (UnstableKeyError, {KeyTypeError, StreamError, TypeError}),
        (StateError, {StreamError}),
        (CheckpointError, {StreamError}),
        (InternalError, {StreamError}),
    ],
)
def test_each_error_has_its_base_classes(error: type[Exception], parents: set[type]) -> None:
    assert set(error.__mro__) == {error, *parents, Exception, BaseException, object}


def test_an_internal_error_requests_a_report_in_one_line() -> None:
    text = str(InternalError("vertex 2 has no input"))
    assert text.startswith("vertex 2 has no input (")
    assert "please report" in text
    assert "\n" not in text


def test_an_internal_error_can_be_pickled() -> None:
    error = InternalError("vertex 2 has no input")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Nameless:
    def __repr__(self) -> str:
        return None  # type: ignore[return-value]


class Tall:
    def __repr__(self) -> str:
        return "Tall(\n  1,\r\n  2)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        (Tall(), "Tall(   1,   2)"),
        (Broken(), "<Broken whose repr raises RuntimeError>"),
        (Nameless(), "<Nameless whose repr raises TypeError>"),
        ("x" * 78, repr("x" * 78)),
        ("x" * 79, "'" + "x" * 76 + "..."),
        ("\ud800", r"'\ud800'"),
    ],
)
def test_short_repr_truncates_the_repr_and_reports_an_error_of_repr(
    value: object, text: str
) -> None:
    assert short_repr(value) == text


def test_short_repr_omits_addresses() -> None:
    assert short_repr([object()]) == "[<object object>]"
    assert short_repr("<x at 0x12>") == "'<x at 0x12>'"


def test_short_repr_has_a_limited_length() -> None:
    assert short_repr([1] * 1000, limit=10) == "[1, 1, ..."
