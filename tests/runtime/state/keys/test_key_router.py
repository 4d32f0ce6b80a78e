from __future__ import annotations

import datetime as dt
import enum
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import KeyTypeError, UnstableKeyError
from opchain.runtime.state.keys import key_router
from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_groups import key_group, operator_index
from opchain.runtime.state.keys.key_hashers import hasher_named, tuple_of
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.keys.vector_hash import vector_hash
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.state.keys.java_hash import Hasher

GROUPS, CHANNELS = 128, 7


class Level(enum.IntEnum):
    NONE = 0
    LOW = 1


class Count(int):
    pass


class Word(str):
    __slots__ = ()


class Ends(dt.tzinfo):
    """A zone whose offset depends on `fold` only."""

    def __repr__(self) -> str:
        return "Ends()"  # ids of tests contain it

    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(hours=1 if when is not None and when.fold else 2)

    def dst(self, when: dt.datetime | None) -> None:
        return None

    def tzname(self, when: dt.datetime | None) -> None:
        return None


ENDS = Ends()
REPEATED_HOUR = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ENDS)
EQUAL_IN_PYTHON: list[list[Any]] = [
    [1, True, 1.0, Level.LOW, Count(1), Decimal(1), np.int64(1), np.float32(1), np.bool_(True)],
    [0, False, 0.0, -0.0, Level.NONE, Decimal("-0"), Decimal("0.0"), np.int8(0)],
    [-1, -1.0, Count(-1), np.int32(-1)],
    [(1,), (True,), (1.0,), (Level.LOW,), (np.int64(1),)],
    [((0,), "a"), ((-0.0,), "a"), ((False,), "a")],
    [[1], [True], [1.0]],
    [Row(1), Row(True), Row(1.0)],
    ["a", Word("a"), np.str_("a")],
    [b"a", bytearray(b"a"), np.bytes_(b"a")],
    [Decimal("1.5"), Decimal("1.50"), 1.5],
    [REPEATED_HOUR, REPEATED_HOUR.replace(fold=1)],
]
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 3),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.sampled_from(["a", "b", "c"]),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.uuids(),
)
KEYS = st.one_of(
    st.sampled_from([key for keys in EQUAL_IN_PYTHON for key in keys]),
    SCALARS,
    st.recursive(SCALARS | st.none(), lambda inner: st.lists(inner, max_size=3)).map(
        lambda value: (value, "a")
    ),
    st.lists(SCALARS | st.none(), max_size=3),
)
ONE_CLASS = st.sampled_from(
    [
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-3, 3),
        st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
        st.sampled_from(["a", "b", "c", "\ud800", ""]),
        st.text(),
        st.binary(),
        st.dates(),
        st.sampled_from([REPEATED_HOUR, REPEATED_HOUR.replace(fold=1)]),
        st.sampled_from([Decimal("1.0"), Decimal("1.00")]),
        st.tuples(st.sampled_from([0, False, 0.0, -0.0]), st.text()),
    ]
).flatmap(st.lists)


def hide_numpy(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "numpy", None)
    vector_hash.cache_clear()


def numpy_for_every_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(key_router, "_SMALLEST_VECTOR", 1)
    patch.setattr(key_router, "_VECTOR_BEATS_CACHE", dict.fromkeys((int, bool, str, bytes), 1))


def cache_before_numpy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(key_router, "_SMALLEST_VECTOR", 1)
    patch.setattr(
        key_router, "_VECTOR_BEATS_CACHE", dict.fromkeys((int, bool, str, bytes), sys.maxsize)
    )
    patch.setattr(key_router, "_CACHE_LIMIT", 4)
    patch.setattr(key_router, "_REST_BATCHES", 1)


def small_cache_without_numpy(patch: pytest.MonkeyPatch) -> None:
    hide_numpy(patch)
    patch.setattr(key_router, "_CACHE_LIMIT", 4)


def unchanged(patch: pytest.MonkeyPatch) -> None:
    """Changes nothing."""


WAYS = (
    unchanged,
    numpy_for_every_batch,
    cache_before_numpy,
    hide_numpy,
    small_cache_without_numpy,
)


@contextmanager
def routing(way: Callable[[pytest.MonkeyPatch], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        way(patch)
        yield
    vector_hash.cache_clear()


def scalar(keys: list[Any], hasher: Hasher = java_hash_code) -> list[tuple[int, int]]:
    groups = [key_group(key, GROUPS, hasher) for key in keys]
    return [(operator_index(group, GROUPS, CHANNELS), group) for group in groups]


def routed(router: KeyRouter, keys: list[Any]) -> list[tuple[int, int]]:
    return list(zip(router.route(keys), router.key_groups_of(keys), strict=True))


@pytest.mark.parametrize("way", WAYS)
@given(batches=st.lists(st.one_of(st.lists(KEYS), ONE_CLASS)))
def test_routing_does_not_depend_on_the_batch_or_on_earlier_batches(
    way: Callable[[pytest.MonkeyPatch], None], batches: list[list[Any]]
) -> None:
    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS)
        for keys in batches:
            assert routed(router, keys) == scalar(keys)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "keys", EQUAL_IN_PYTHON, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))
)
@pytest.mark.parametrize("size", [1, 40, pytest.param(600, marks=pytest.mark.slow)])
def test_keys_that_are_equal_in_python_only_are_routed_separately(
    way: Callable[[pytest.MonkeyPatch], None], keys: list[Any], size: int
) -> None:
    with routing(way):
        for some in (keys, keys[::-1]):
            router = KeyRouter(GROUPS, CHANNELS)
            for _ in range(3):
                for key in some:
                    assert routed(router, [key] * size) == scalar([key]) * size
                assert routed(router, some * size) == scalar(some) * size


@pytest.mark.parametrize("way", WAYS)
@given(batches=st.lists(st.lists(st.integers(-2, 2) | st.booleans())))
def test_the_declared_type_decides_about_routing(
    way: Callable[[pytest.MonkeyPatch], None], batches: list[list[Any]]
) -> None:
    hasher = hasher_named("Integer")
    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS, hasher)
        pairs = KeyRouter(GROUPS, CHANNELS, tuple_of(hasher, hasher))
        for keys in batches:
            assert routed(router, keys) == scalar(keys, hasher)
            twice: list[Any] = [(key, -1) for key in keys]
            assert routed(pairs, twice) == scalar(twice, tuple_of(hasher, hasher))


@pytest.mark.parametrize("way", WAYS)
@given(batches=st.lists(st.lists(st.sampled_from(["a", "b", 1, True]))))
def test_any_function_can_be_a_hasher(
    way: Callable[[pytest.MonkeyPatch], None], batches: list[list[Any]]
) -> None:
    def hasher(key: Any) -> int:
        return -5 * len(repr(key))

    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS, hasher)
        for keys in batches:
            assert routed(router, keys) == scalar(keys, hasher)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "bad",
    [None, {1}, (1, {2}), object()],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
@pytest.mark.parametrize("size", [1, 40, 600])
def test_a_key_without_a_stable_hash_is_refused_in_any_batch(
    way: Callable[[pytest.MonkeyPatch], None], bad: object, size: int
) -> None:
    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS)
        for keys in ([bad], [*range(size), bad], [bad] * size):
            for call in (router.route, router.key_groups_of):
                with pytest.raises(UnstableKeyError):
                    call(keys)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 40, 600])
def test_a_key_that_does_not_have_the_declared_type_is_refused(
    way: Callable[[pytest.MonkeyPatch], None], size: int
) -> None:
    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS, hasher_named("Byte"))
        assert routed(router, [127] * size) == scalar([127] * size, hasher_named("Byte"))
        for keys in ([127] * size + [128], ["a"] * size):
            with pytest.raises(KeyTypeError):
                router.route(keys)


@pytest.mark.parametrize("way", WAYS)
def test_a_cache_is_bounded(way: Callable[[pytest.MonkeyPatch], None]) -> None:
    with routing(way):
        router = KeyRouter(GROUPS, CHANNELS)
        limit = key_router._CACHE_LIMIT
        for begin in range(0, 3 * limit, 100):
            router.route([dt.timedelta(seconds=second) for second in range(begin, begin + 100)])
            router.route([f"{number}" for number in range(begin, begin + 100)])
        for cache in router._channels._caches.values():
            assert len(cache._numbers) <= limit
        assert router._channels._caches[dt.timedelta]._numbers


def test_a_cache_is_bypassed_while_keys_are_new_and_used_when_they_repeat() -> None:
    cache = key_router._Cache(rests=True)
    asked: list[list[int]] = []

    def compute(keys: list[int]) -> list[int]:
        asked.append(keys)
        return [10 * key for key in keys]

    assert cache.look_up([1, 2], compute) == [10, 20]
    assert cache.look_up([2, 1], compute) == [20, 10]
    assert cache.look_up([1, 3, 2], compute) == [10, 30, 20]
    assert asked == [[1, 2], [3]]
    assert cache.look_up([4, 5, 1], compute) == [40, 50, 10]
    for _ in range(key_router._REST_BATCHES):
        assert cache.look_up([1], compute) == [10]
    assert asked[2:] == [[4, 5, 1], *[[1]] * key_router._REST_BATCHES]
    assert cache.look_up([1, 4], compute) == [10, 40]
    assert asked[-1] == [1]


def test_a_cache_of_expensive_values_is_never_bypassed() -> None:
    cache = key_router._Cache(rests=False)
    asked: list[list[int]] = []

    def compute(keys: list[int]) -> list[int]:
        asked.append(keys)
        return keys

    for first in range(0, 100, 10):
        cache.look_up(list(range(first, first + 10)), compute)
    asked.clear()
    assert cache.look_up(list(range(100)), compute) == list(range(100))
    assert not asked


@pytest.mark.parametrize(
    ("max_parallelism", "parallelism", "message"),
    [
        (0, 1, "max parallelism must be from 1 to 32768, but is 0"),
        (128, 0, "parallelism must be from 1 to 32768, but is 0"),
        (4, 5, "4 key groups would be shared by 5 subtasks"),
    ],
)
def test_parallelisms_out_of_bounds_are_refused(
    max_parallelism: int, parallelism: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        KeyRouter(max_parallelism, parallelism)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_routing_does_not_depend_on_pythonhashseed(seed: str) -> None:
    program = (
        "from opchain.runtime.state.keys.key_router import KeyRouter\n"
        "print(KeyRouter(128, 128).route(['hello', '', 42, 0, ('a', None), b'x'] * 3)[:6])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    keys = ["hello", "", 42, 0, ("a", None), b"x"]
    assert run.stdout.strip() == str([key_group(key, 128) for key in keys])
