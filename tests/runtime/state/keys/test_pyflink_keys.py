"""Keys are assigned to the subtasks of PyFlink 2.3; the expected subtasks were observed there."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.common import Row, Types
from opchain.runtime.state.keys.key_groups import key_group, operator_index
from opchain.runtime.state.keys.key_hashers import hasher_of_type
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.keys.pyflink_keys import TypedSelector, hash_pickled, pyflink_hasher

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
ROW = Types.ROW([Types.STRING(), Types.INT()])

SEEN = [
    (Types.STRING(), "", 0),
    (Types.INT(), 20, 2),
    (Types.LONG(), 40, 0),
    (Types.DOUBLE(), 10.0, 1),
    (Types.INT(), 10.0, 1),
    (Types.BOOLEAN(), True, 1),
    (PAIR, ("", 2), 2),
    (ROW, Row("", 2), 1),
    (None, "", 2),
    (None, 20, 0),
    (None, 10.0, 1),
    (None, True, 2),
    (None, ("", 2), 0),
    (None, None, 2),
    (None, frozenset([2]), 2),
    (None, {"k": ""}, 0),
    (None, [""], 1),
    (Types.LIST(Types.LONG()), [1, 1], 2),
    (Types.LIST(Types.LONG()), [10, 1], 1),
]


def hasher_of(key_type: Any) -> Any:
    return pyflink_hasher(key_type, None if key_type is None else hasher_of_type(key_type))


@pytest.mark.parametrize(("key_type", "key", "subtask"), SEEN, ids=repr)
def test_a_key_is_assigned_to_the_subtask_of_pyflink(key_type: Any, key: Any, subtask: int) -> None:
    hasher = hasher_of(key_type)
    assert operator_index(key_group(key, 128, hasher), 128, 3) == subtask
    assert list(KeyRouter(128, 3, hasher).route([key] * 50)) == [subtask] * 50


@pytest.mark.parametrize("key_type", [None, Types.LONG(), Types.INT()])
def test_a_batch_of_ints_is_routed_like_single_keys(key_type: Any) -> None:
    hasher = hasher_of(key_type)
    keys = [*range(-300, 300), 2**31 - 1, -(2**31), 65_535, 65_536]
    alone = [operator_index(key_group(key, 128, hasher), 128, 7) for key in keys]
    assert list(KeyRouter(128, 7, hasher).route(keys)) == alone


def test_a_batch_of_texts_is_routed_like_single_keys() -> None:
    for hasher in (hash_pickled, hasher_of(Types.STRING())):
        keys = [f"key {number} é" * (number % 40) for number in range(600)]
        alone = [operator_index(key_group(key, 128, hasher), 128, 7) for key in keys]
        assert list(KeyRouter(128, 7, hasher).route(keys)) == alone


def test_a_large_batch_of_pairs_with_texts_is_routed_like_single_keys() -> None:
    keys = [(number, f"a text of some length {number % 90}") for number in range(20_000)]
    alone = [operator_index(key_group(key, 128, hash_pickled), 128, 7) for key in keys]
    assert list(KeyRouter(128, 7, hash_pickled).route(keys)) == alone


def test_equal_keys_of_different_objects_have_one_hash_code() -> None:
    text = b"abc".decode()
    assert hash_pickled((text, text)) == hash_pickled((text, b"abc".decode()))
    assert hash_pickled(float("nan")) == hash_pickled(-float("nan"))


def test_none_is_a_key_of_a_declared_type() -> None:
    assert hasher_of(Types.STRING())(None) == 31


def test_row_keys_get_the_field_names_of_their_type() -> None:
    selector = TypedSelector(
        operator_of_pair, Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])
    )
    for each in (selector, pickle.loads(pickle.dumps(selector))):
        assert repr(each(("x", 1.5))) == "Row(a='x', b=1)"
        assert each(None) is None


def operator_of_pair(value: Any) -> Any:
    return None if value is None else Row(*value)
