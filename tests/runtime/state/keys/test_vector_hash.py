from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.errors import KeyTypeError, UnstableKeyError
from opchain.runtime.state.keys import vector_hash as module
from opchain.runtime.state.keys.java_hash import MASK, java_hash_code, nested_hash_code
from opchain.runtime.state.keys.key_groups import murmur_hash
from opchain.runtime.state.keys.key_hashers import hasher_named, list_of, tuple_of
from opchain.runtime.state.keys.pyflink_keys import RowKey, hash_pickled
from opchain.runtime.state.keys.vector_hash import VectorHash, vector_hash
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from opchain.runtime.state.keys.java_hash import Hasher

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates and NUL too
ONE_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": st.integers(-(2**63), 2**63 - 1),
    "long int": st.integers(-(2**70), 2**70),
    "float": st.floats(),
    "str": ANY_TEXT,
    "plain str": st.text("ab", min_size=1),
    "bytes": st.binary(),
    "bytearray": st.binary().map(bytearray),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False),
    "pair": st.tuples(ANY_TEXT, st.integers()),
    "pair of any": st.tuples(st.none() | st.integers() | ANY_TEXT, st.none() | st.booleans()),
    "tuple of any length": st.lists(st.integers() | st.none()).map(tuple),
    "nested tuple": st.tuples(st.tuples(st.floats()), st.lists(st.none() | st.booleans())),
    "list": st.lists(st.integers() | st.none() | ANY_TEXT),
    "row": st.lists(st.integers()).map(lambda values: Row(*values)),
}
DECLARED: dict[str, tuple[Hasher, st.SearchStrategy[Any]]] = {
    "Boolean": (hasher_named("Boolean"), st.booleans()),
    "Byte": (hasher_named("Byte"), st.integers(-128, 127)),
    "Short": (hasher_named("Short"), st.integers(-(2**15), 2**15 - 1)),
    "Integer": (hasher_named("Integer"), st.integers(-(2**31), 2**31 - 1) | st.booleans()),
    "Long": (hasher_named("Long"), st.integers(-(2**63), 2**63 - 1)),
    "BigInteger": (hasher_named("BigInteger"), st.integers()),
    "Float": (hasher_named("Float"), st.floats(width=32)),
    "Double": (hasher_named("Double"), st.floats() | st.integers(-(2**60), 2**60)),
    "String": (hasher_named("String"), ANY_TEXT),
    "BigDecimal": (hasher_named("BigDecimal"), ONE_TYPE["decimal"]),
    "Tuple": (
        tuple_of(hasher_named("Integer"), hasher_named("String")),
        st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | ANY_TEXT),
    ),
    "List": (list_of(hasher_named("Byte")), st.lists(st.integers(-128, 127))),
}


class Point(NamedTuple):
    x: int
    y: str


class Count(int):
    pass


@pytest.mark.parametrize("name", ONE_TYPE)
@given(data=st.data())
def test_codes_are_those_of_java_hash_code(name: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(ONE_TYPE[name]))
    expected = [java_hash_code(key) & MASK for key in keys]
    assert vector_hash().codes(keys).tolist() == expected


@given(st.lists(st.one_of(*ONE_TYPE.values())))
def test_codes_of_mixed_keys_are_those_of_java_hash_code(keys: list[Any]) -> None:
    expected = [java_hash_code(key) & MASK for key in keys]
    assert vector_hash().codes(keys).tolist() == expected


@given(st.lists(st.none() | st.integers()))
def test_nested_values_may_be_none(keys: list[Any]) -> None:
    expected = [nested_hash_code(key) & MASK for key in keys]
    assert vector_hash().codes(keys, nested=True).tolist() == expected


@pytest.mark.parametrize("name", DECLARED)
@given(data=st.data())
def test_codes_of_declared_types_are_those_of_their_hashers(name: str, data: st.DataObject) -> None:
    hasher, strategy = DECLARED[name]
    keys = data.draw(st.lists(strategy))
    expected = [hasher(key) & MASK for key in keys]
    assert vector_hash().codes(keys, hasher).tolist() == expected


UNTYPED: dict[str, st.SearchStrategy[Any]] = {
    "small int": st.integers(-300, 300) | st.integers(65_000, 66_000),
    "int": st.integers(-(2**31), 2**31 - 1),
    "any int": st.integers(),
    "bool": st.booleans(),
    "text": ANY_TEXT,
    "long text": st.integers(80, 90).map("\u20ac".__mul__) | st.integers(250, 260).map("a".__mul__),
    "bytes": st.binary(),
    "pair": st.tuples(st.integers(), ANY_TEXT),
    "texts that come twice": st.lists(
        # msgspec does not return CPython's cached object for a text of one character.
        st.sampled_from(["", "a", "\u20ac", "ab", b"", b"a", b"ab", 1, True, None])
        | st.sampled_from(["a", "b"]).map(lambda text: msgspec.json.decode(f'"{text}"')),
        min_size=3,
        max_size=3,
    ).map(tuple),
    "tuple of any length": st.lists(st.integers() | st.none()).map(tuple),
    "nested tuple": st.tuples(st.integers(), st.tuples(ANY_TEXT, st.floats())),
    "few dates": st.tuples(
        st.sampled_from(["a", "b"]), st.dates(date(2026, 1, 1), date(2026, 1, 9))
    ),
    "few values of any class": st.tuples(
        st.sampled_from([1, True, 1.0, Decimal("1.0"), Decimal("1.00"), date(2026, 1, 1), None]),
        st.sampled_from(
            [date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=timezone.utc), 0.0, -0.0, timedelta(1)]
        ),
    ),
}


@pytest.mark.parametrize("name", UNTYPED)
@given(data=st.data())
def test_codes_of_keys_without_a_type_are_those_of_their_pickles(
    name: str, data: st.DataObject
) -> None:
    keys = data.draw(st.lists(UNTYPED[name], min_size=1))
    for hasher in (hash_pickled, RowKey(hash_pickled)):
        found = vector_hash().codes(keys, hasher).tolist()
        assert found == [hasher(key) & MASK for key in keys]


@pytest.mark.parametrize("name", ["str", "bytes", "list", "nested tuple"])
@given(data=st.data())
def test_batches_larger_than_the_tables_are_hashed_in_parts(name: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(ONE_TYPE[name]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_UNITS", 8)
        codes = VectorHash().codes(keys)
    assert codes.tolist() == [java_hash_code(key) & MASK for key in keys]


def test_equal_keys_are_hashed_once() -> None:
    hashed = []

    def hasher(key: Any) -> int:
        hashed.append(key)
        return hash_pickled(key)

    keys = [("a", date(2026, 1, day)) for day in (1, 2, 1, 1)]
    assert vector_hash().codes(keys, hasher).tolist() == [hash_pickled(key) & MASK for key in keys]
    assert hashed == keys[:2]


def test_a_long_string_among_many_short_ones_is_hashed() -> None:
    keys = ["a" * 200_000, *map(str, range(20_000)), "\U0001f600" * 70_000, ""]
    assert vector_hash().codes(keys).tolist() == [java_hash_code(key) & MASK for key in keys]


@pytest.mark.parametrize(
    "keys",
    [
        [Point(1, "a"), Point(-1, "b")],
        [Count(-1), Count(2**40)],
        [(), ()],
        [(), (1,)],
        ["", ""],
        [""],
        ["\0", "a\0", ""],
        [b"", b""],
        [[], []],
        [],
    ],
    ids=repr,
)
def test_corner_cases_are_hashed_as_in_java(keys: list[Any]) -> None:
    assert vector_hash().codes(keys).tolist() == [java_hash_code(key) & MASK for key in keys]


@pytest.mark.parametrize(
    "keys",
    [[None], [1, None], [{1}], [(1, {2})], [[1], [{2}]], [Decimal("NaN")], [1, "a", object()]],
)
def test_a_key_without_a_stable_hash_is_refused(keys: list[Any]) -> None:
    with pytest.raises(UnstableKeyError):
        vector_hash().codes(keys)


@pytest.mark.parametrize(
    ("hasher", "keys"),
    [
        (hasher_named("Byte"), [1, 128]),
        (hasher_named("Integer"), [1, 2**31]),
        (hasher_named("Integer"), [1, 2**70]),
        (hasher_named("Long"), [1, 2**63]),
        (hasher_named("Long"), [1, "a"]),
        (hasher_named("String"), ["a", None]),
        (tuple_of(hasher_named("Integer")), [(1,), (1, 2)]),
        (tuple_of(hasher_named("Integer")), [(1,), (2**31,)]),
    ],
)
def test_a_key_that_its_declared_type_cannot_hold_is_refused(
    hasher: Hasher, keys: list[Any]
) -> None:
    with pytest.raises(KeyTypeError):
        vector_hash().codes(keys, hasher)


@given(
    st.lists(st.integers(0, MASK)),
    st.tuples(st.integers(1, 32768), st.integers(1, 32768)).map(sorted),
)
def test_operator_indexes_are_those_of_single_keys(codes: list[int], bounds: list[int]) -> None:
    import numpy as np  # noqa: PLC0415

    parallelism, max_parallelism = bounds
    codes = [*codes, -2089875627 & MASK]
    found = vector_hash().operator_indexes(np.array(codes, np.uint32), max_parallelism, parallelism)
    assert found.tolist() == [
        murmur_hash(code) % max_parallelism * parallelism // max_parallelism for code in codes
    ]


def test_operator_indexes_does_not_change_its_argument() -> None:
    codes = vector_hash().codes([1, 2, 3])
    vector_hash().operator_indexes(codes, 128, 4)
    assert codes.tolist() == [1, 2, 3]


def test_importing_vector_hash_does_not_import_numpy() -> None:
    program = "import sys, opchain.runtime.state.keys.vector_hash; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_numpy_vector_hash_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError):
        VectorHash()
