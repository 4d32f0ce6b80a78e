from __future__ import annotations

import copy
import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import UnstableKeyError
from opchain.runtime.state.keys.key_groups import (
    KeyGroupRange,
    default_max_parallelism,
    key_group,
    key_group_range,
    murmur_hash,
    operator_index,
)
from opchain.runtime.state.keys.key_hashers import hasher_named
from opchain.runtime.state.keys.key_router import KeyRouter

CONFORMANCE = Path(__file__).parents[3] / "conformance"


def load_checker() -> Any:
    spec = importlib.util.spec_from_file_location("key_groups", CONFORMANCE / "key_groups.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECKER = load_checker()
DOCUMENT = json.loads(gzip.decompress((CONFORMANCE / "key_groups.json.gz").read_bytes()))
PARALLELISMS = st.tuples(st.integers(1, 32768), st.integers(1, 32768)).map(sorted)


def number_of_values(document: dict[str, Any]) -> int:
    """Counted independently of the checker, which must not skip any value."""
    keys: int = sum(
        2
        + CHECKER.is_hashed_by_python_type(key["type"])
        + len(key["key_groups"])
        + sum(map(len, key["operators"]))
        for key in document["keys"]
    )
    ranges: int = sum(2 * len(table["ranges"]) for table in document["key_group_ranges"])
    single = ("murmur_hash", "default_max_parallelism", "errors")
    return keys + ranges + sum(len(document[table]) for table in single) + 1


def test_all_values_of_the_key_document_are_those_of_flink() -> None:
    equal, total, differences = CHECKER.check(DOCUMENT)
    assert differences == []
    assert equal == total == number_of_values(DOCUMENT)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The document with one changed value and one entry per table."""
    document = {
        name: table[: max(1, path[1] + 1)] if isinstance(table, list) and name == path[0] else table
        for name, table in DOCUMENT.items()
    }
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("keys", 0, "hash_code"), 5, "hash code of Integer 0: 0, Flink has 5"),
        (("keys", 0, "murmur"), 5, "murmur hash of Integer 0: 593689054, Flink has 5"),
        (("keys", 0, "key_groups", 5), 5, "key group of 32768 of Integer 0: 31198, Flink has 5"),
        (("keys", 0, "operators", 3, 8), 5, "operator of 128 of 128 of Integer 0: 94, Flink has 5"),
        (("murmur_hash", 1, 1), 5, "murmur_hash(1): 68075478, Flink has 5"),
        (("key_group_ranges", 3, "ranges", 0, 1), 5, "key_group_range(7, 1, 0).first: 0, Fl"),
        (("key_group_ranges", 3, "ranges", 0, 2), 5, "key_group_range(7, 1, 0).last: 6, Fl"),
        (("default_max_parallelism", 5, "max_parallelism"), 5, "default_max_parallelism(3): 128"),
        (("default_max_parallelism", 0, "parallelism"), 3, "default_max_parallelism(3): False, F"),
    ],
)
def test_the_checker_detects_a_difference(path: tuple[Any, ...], value: Any, text: str) -> None:
    equal, total, differences = CHECKER.check(changed(path, value))
    assert any(text in difference for difference in differences), differences
    assert equal < total


@pytest.mark.parametrize("max_parallelism_place", range(len(DOCUMENT["max_parallelisms"])))
@pytest.mark.parametrize("parallelism_place", range(len(DOCUMENT["parallelisms"])))
def test_a_router_assigns_all_keys_as_flink_does(
    max_parallelism_place: int, parallelism_place: int
) -> None:
    max_parallelism = DOCUMENT["max_parallelisms"][max_parallelism_place]
    parallelism = DOCUMENT["parallelisms"][parallelism_place]
    if parallelism > max_parallelism:
        with pytest.raises(ValueError, match="max parallelism must not be smaller"):
            KeyRouter(max_parallelism, parallelism)
        return
    for type_name in {entry["type"]: None for entry in DOCUMENT["keys"]}:
        entries = [entry for entry in DOCUMENT["keys"] if entry["type"] == type_name]
        keys = [CHECKER.python_value(type_name, entry) for entry in entries]
        routers = [KeyRouter(max_parallelism, parallelism, CHECKER.hasher_of(type_name))]
        if CHECKER.is_hashed_by_python_type(type_name):
            routers.append(KeyRouter(max_parallelism, parallelism))
        for router in routers:
            assert router.key_groups_of(keys) == [
                entry["key_groups"][max_parallelism_place] for entry in entries
            ]
            assert router.route(keys) == [
                entry["operators"][max_parallelism_place][parallelism_place] for entry in entries
            ]


@pytest.mark.parametrize(
    ("key", "group"), [("hello", 35), ("", 94), ("\u952e", 3), ("user-42", 20), (0, 94), (-1, 94)]
)
def test_key_groups_are_those_of_flink(key: Any, group: int) -> None:
    assert key_group(key, 128) == group


def test_a_declared_type_changes_the_key_group() -> None:
    assert key_group(-1, 128, hasher_named("Integer")) == 80


def test_a_key_without_a_stable_hash_has_no_key_group() -> None:
    with pytest.raises(UnstableKeyError):
        key_group({1}, 128)


def test_a_murmur_hash_equal_to_the_smallest_int_becomes_zero() -> None:
    assert murmur_hash(-2089875627) == 0


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_murmur_hash_is_not_negative(code: int) -> None:
    assert 0 <= murmur_hash(code) < 2**31


@given(PARALLELISMS, st.data())
def test_ranges_divide_the_key_groups_among_subtasks(
    parallelisms: list[int], data: st.DataObject
) -> None:
    parallelism, max_parallelism = parallelisms
    index = data.draw(st.integers(0, parallelism - 1))
    owned = key_group_range(max_parallelism, parallelism, index)
    assert operator_index(owned.first, max_parallelism, parallelism) == index
    assert operator_index(owned.last, max_parallelism, parallelism) == index
    if index == 0:
        assert owned.first == 0
    else:
        before = key_group_range(max_parallelism, parallelism, index - 1)
        assert before.last + 1 == owned.first
    if index == parallelism - 1:
        assert owned.last == max_parallelism - 1


def test_a_key_group_range_is_a_collection_of_key_groups() -> None:
    owned = KeyGroupRange(3, 5)
    assert list(owned) == [3, 4, 5]
    assert len(owned) == 3
    assert [group in owned for group in (2, 3, 5, 6)] == [False, True, True, False]
    assert "3" not in owned


@pytest.mark.parametrize(("first", "last"), [(3, 2), (-1, 2)])
def test_a_key_group_range_must_not_be_empty_or_negative(first: int, last: int) -> None:
    with pytest.raises(ValueError, match=f"but is {first} to {last}"):
        KeyGroupRange(first, last)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: key_group("a", 0), "max parallelism must be from 1 to 32768, but is 0"),
        (lambda: key_group("a", 32769), "max parallelism must be from 1 to 32768, but is 32769"),
        (lambda: operator_index(128, 128, 4), "key group must be from 0 to 127, .* but is 128"),
        (lambda: operator_index(-1, 128, 4), "key group must be from 0 to 127, .* but is -1"),
        (lambda: operator_index(0, 128, 0), "parallelism must be from 1 to 32768, but is 0"),
        (lambda: key_group_range(128, 4, 4), "operator index must be from 0 to 3, .* but is 4"),
        (lambda: key_group_range(128, 4, -1), "operator index must be from 0 to 3, .* but is -1"),
        (lambda: key_group_range(4, 5, 0), "4 key groups would be shared by 5 subtasks"),
        (lambda: key_group_range(128, 32769, 0), "parallelism must be from 1 to 32768"),
        (lambda: default_max_parallelism(0), "parallelism must be from 1 to 32768, but is 0"),
        (lambda: default_max_parallelism(32769), "but is 32769"),
    ],
)
def test_arguments_out_of_bounds_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
