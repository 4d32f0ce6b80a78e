"""Frames of keyed state: their order, and errors for frames that cannot be read."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed.keyed_snapshot import CHANGES, WHOLE, in_order
from opchain.runtime.state.keys.key_groups import KeyGroupRange

ALL = KeyGroupRange(0, 9)


def frames(*parts: Any) -> bytes:
    return b"".join(map(pickle.dumps, parts))


def read(data: bytes) -> Any:
    return in_order([{1: data}], ALL, "a snapshot", "'count' (job.py:3)")


def test_frames_are_ordered_by_number_and_then_by_key_group() -> None:
    whole, first, second = (WHOLE, {}), (CHANGES, 1, {}), (CHANGES, 2, {})
    parts = [{5: frames(whole, second), 3: frames(whole)}, {4: frames(first, second), 11: b"?"}]
    assert in_order(parts, ALL, "a snapshot", "here") == [
        (0, [(3, whole), (5, whole)]),
        (1, [(4, first)]),
        (2, [(4, second), (5, second)]),
    ]


class Gone:
    """A class that does not exist any more when it is unpickled."""


class Changed:
    """A class that refuses its saved state."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("version 1 is not supported")

    def __getstate__(self) -> dict[str, int]:
        return {"a": 1}


@pytest.mark.parametrize("kind", [Gone, Changed])
def test_a_class_that_cannot_be_imported_is_named_with_its_state(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"counts": [(0, 1, 5)], "visits": [(0, 1, [kind()])]}
    data = frames((WHOLE, {"counts": [1]}), (CHANGES, 1, [], states))
    if kind is Gone:
        monkeypatch.delitem(globals(), "Gone")
    with pytest.raises(
        StateError,
        match=rf"'count' \(job.py:3\): a snapshot can't be read: objects of state 'visits' are of the class "
        rf"{kind.__module__}.{kind.__name__}, which can't be loaded as it was saved \(",
    ):
        read(data)


def test_an_error_outside_of_a_state_names_the_class_too(monkeypatch: pytest.MonkeyPatch) -> None:
    data = frames((CHANGES, 1, [Gone()], {"counts": []}))
    monkeypatch.delitem(globals(), "Gone")
    with pytest.raises(StateError, match=r"objects are of the class .*Gone, which can't be loaded"):
        read(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"garbage", "can't be read: "),
        (frames((WHOLE, {}))[:-1], "can't be read: "),
        (
            frames((WHOLE, {}), (9, 1)),
            "has format 9, but this version of opchain reads formats 1 and 2",
        ),
        (frames(1), "has format 1"),
        (frames(()), r"has format \(\)"),
    ],
)
def test_damaged_and_foreign_frames_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(StateError, match=message):
        read(data)
