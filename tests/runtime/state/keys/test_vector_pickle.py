"""Batches of pickled keys: see also `test_codes_of_keys_without_a_type_are_those_of_their_pickles`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.state.keys import vector_pickle
from opchain.runtime.state.keys.java_hash import MASK
from opchain.runtime.state.keys.pyflink_keys import hash_pickled
from opchain.runtime.state.keys.vector_hash import vector_hash

BORDERS = [
    sign * (1 << bits) + step
    for bits in (0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48, 55, 56, 62, 63)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]
INTS = st.sampled_from(BORDERS)
TEXTS = st.sampled_from(["", "a", "b", "\xe9", "\u20ac", "ab", "a" * 255, "a" * 256, "\ud800"])
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "text": TEXTS,
    "bytes": TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    "bool": st.booleans(),
    "single": st.tuples(INTS),
    "pair": st.tuples(INTS, TEXTS),
    "texts": st.tuples(TEXTS, TEXTS),
    "texts and bytes": st.tuples(TEXTS, st.sampled_from([b"", b"a", b"ab"]), TEXTS),
    "four": st.tuples(INTS | st.none(), TEXTS | st.booleans(), INTS, TEXTS | INTS),
    "many texts": st.tuples(*[st.sampled_from(["x" * 255, "y" * 200])] * 5),
    "empty": st.just(()),
}


def codes(keys: list[Any]) -> list[int]:
    return vector_hash().codes(keys, hash_pickled).tolist()


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
def test_codes_are_those_of_pickled_keys(name: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS[name], min_size=1, max_size=20))
    assert codes(keys) == [hash_pickled(key) & MASK for key in keys]


def refuse(*_: Any) -> bytes:
    raise AssertionError("pickled")


@pytest.mark.parametrize(
    "key",
    [
        7,
        1_700_000_000_000,
        -1,
        "text",
        b"bytes",
        True,
        (1, 2),
        ("a", 1 << 40, None, False),
        ("ab", "ab"),
    ],
    ids=repr,
)
def test_tuples_of_ints_and_short_texts_are_not_pickled(
    key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = hash_pickled(key) & MASK
    monkeypatch.setattr(vector_pickle, "pickle", type("Refusing", (), {"dumps": refuse}))
    assert codes([key, key]) == [expected] * 2
