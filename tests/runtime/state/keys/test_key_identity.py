from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pickle
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Row
from opchain.runtime.errors import KeyTypeError
from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_hashers import hasher_named
from opchain.runtime.state.keys.key_identity import (
    PLAIN_CLASSES,
    TypedKey,
    key_identity,
    key_of,
    state_key,
)
from opchain.runtime.state.keys.pyflink_keys import hash_pickled


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class User:
    name: str
    note: str = dataclasses.field(default="", compare=False)


class Shout(str):
    __slots__ = ()


UTC = dt.timezone.utc
PLUS_ONE = dt.timezone(dt.timedelta(hours=1))

APART: list[tuple[Any, Any]] = [
    (1, True),
    (0, False),
    (1, 1.0),
    (1.0, True),
    (0.0, -0.0),
    (1, decimal.Decimal(1)),
    (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    (1, Level.LOW),
    (("a", 1), ("a", True)),
    (("a", 0.0), ("a", -0.0)),
    ((1, (2, 3)), (1, (2.0, 3))),
    ([1], [True]),
    ([1], (1,)),
    (Row(1), Row(True)),
    (dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2020, 1, 1)),  # noqa: DTZ001 - deliberately naive
    (User("a"), User("b")),
]

TOGETHER: list[tuple[Any, Any]] = [
    ("a", "a"),
    (float("nan"), float("nan")),
    (("a", float("nan")), ("a", float("nan"))),
    ([1, "a"], [1, "a"]),
    (bytearray(b"ab"), bytearray(b"ab")),
    (Row(1, "a"), Row(1, "a")),
    (Row(a=1), Row(1)),
    (User("a", "x"), User("a", "y")),
    (Colour.RED, Colour.RED),
    (Right.READ | Right.WRITE, Right.WRITE | Right.READ),
    (Point(1, 2), Point(1, 2)),
    (dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2020, 1, 1, 1, tzinfo=PLUS_ONE)),
    (dt.time(1, 2), dt.time(1, 2)),
    (Shout("a"), Shout("a")),
    ((None, 1), (None, 1)),
]


@pytest.mark.parametrize(("one", "other"), APART, ids=map(repr, APART))
def test_keys_that_are_different_in_java_have_unequal_state_keys(one: Any, other: Any) -> None:
    assert state_key(one) != state_key(other)
    assert len({state_key(one), state_key(other)}) == 2


@pytest.mark.parametrize(("one", "other"), TOGETHER, ids=map(repr, TOGETHER))
def test_keys_that_are_equal_in_java_have_equal_state_keys(one: Any, other: Any) -> None:
    assert state_key(one) == state_key(other)
    assert {state_key(one): 1}[state_key(other)] == 1
    assert java_hash_code(one) == java_hash_code(other)


@pytest.mark.parametrize(
    "key",
    ["a", 1, b"b", dt.date(2020, 1, 1), dt.timedelta(1), ("a", 1, None), (), ("a", b"b")],
)
def test_plain_keys_are_their_own_state_keys(key: Any) -> None:
    assert state_key(key) is key
    assert key_of(state_key(key)) is key


@pytest.mark.parametrize("key", [True, 1.5, [1], ("a", 1.0), Point(1, 2), User("a", "x")])
def test_the_key_is_recovered_from_its_state_key(key: Any) -> None:
    assert key_of(state_key(key)) == key
    assert type(key_of(state_key(key))) is type(key)


def test_a_typed_key_is_printed_as_its_key_and_can_be_pickled() -> None:
    typed = state_key(("a", 1.0))
    assert isinstance(typed, TypedKey)
    assert repr(typed) == "('a', 1.0)"
    assert pickle.loads(pickle.dumps(typed)) == typed
    assert typed != ("a", 1.0)


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


@pytest.mark.parametrize(
    ("key", "equal", "other"),
    [
        (None, None, 0),
        ({"a": 1}, {"a": 1}, {"a": 2}),
        ({"ab": "ab"}, {b"ab".decode(): b"ab".decode()}, {"ab": "a"}),
        (frozenset({"aa", "bb"}), frozenset({"bb", "aa"}), frozenset({"aa"})),
        ({1}, {1}, {True}),
        (("a", {}), ("a", {}), ("a", {1: 2})),
        (Point(1), Point(1), Point(2)),
        ([Point(1)], [Point(1)], [Point(2)]),
    ],
)
def test_any_object_is_a_key_identified_by_its_pickle(key: Any, equal: Any, other: Any) -> None:
    assert state_key(key) == state_key(equal)
    assert hash(state_key(key)) == hash(state_key(equal))
    assert hash_pickled(key) == hash_pickled(equal)
    assert state_key(key) != state_key(other)
    assert key_of(state_key(key)) is key


def test_numpy_scalars_are_identified_with_python_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert state_key((numpy.float32(1.5), "a")) == state_key((1.5, "a"))
    assert state_key([numpy.int64(1)]) == state_key([1])


SCALARS = st.one_of(
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")]),
    st.text("ab", max_size=1),
    st.sampled_from([b"", b"a"]),
    st.none(),
    st.sampled_from([decimal.Decimal("1.0"), decimal.Decimal("1.00")]),
)
KEYS = st.one_of(
    SCALARS.filter(lambda key: key is not None),
    st.lists(SCALARS, max_size=2),
    st.tuples(SCALARS, SCALARS),
    st.tuples(st.tuples(SCALARS)),
)


@given(KEYS, KEYS)
def test_equal_state_keys_have_equal_java_hash_codes(one: Any, other: Any) -> None:
    if state_key(one) == state_key(other):
        assert hash(state_key(one)) == hash(state_key(other))
        assert java_hash_code(one) == java_hash_code(other)


@given(KEYS, KEYS)
def test_different_keys_of_one_shape_have_different_state_keys(one: Any, other: Any) -> None:
    """The repr shows differences that Python's equality ignores: types of parts, and the sign of zero."""
    assert (state_key(one) == state_key(other)) is (repr(one) == repr(other))


@pytest.mark.parametrize("name", ["Byte", "Short", "Integer", "Long", "BigInteger"])
def test_keys_declared_as_integers_are_the_same_if_their_numbers_are_equal(name: str) -> None:
    identity = key_identity(hasher_named(name))
    assert identity.of(True) == identity.of(1) == 1
    assert identity.plain == {int}


def test_keys_declared_as_double_are_floats() -> None:
    identity = key_identity(hasher_named("Double"))
    assert identity.of(1) == identity.of(1.0)
    assert identity.of(0.0) != identity.of(-0.0)
    assert not identity.plain
    with pytest.raises(KeyTypeError, match="a float or int"):
        identity.of("1")


def test_keys_declared_as_float_have_32_bits() -> None:
    identity = key_identity(hasher_named("Float"))
    assert identity.of(0.1) == identity.of(0.1 + 1e-12)
    assert identity.of(0.1) != identity.of(0.2)


def test_other_declared_types_use_the_identity_of_undeclared_keys() -> None:
    assert key_identity(hasher_named("String")).plain == PLAIN_CLASSES
    assert key_identity().of is state_key


class Spot(pydantic.BaseModel):
    x: int


class OtherSpot(Spot):
    pass


def test_pydantic_models_are_one_key_if_class_and_fields_are_equal() -> None:
    assert state_key(Spot(x=1)) == state_key(Spot(x=1))
    assert state_key(Spot(x=1)) not in {state_key(Spot(x=2)), state_key(OtherSpot(x=1))}
    assert state_key(Spot.model_construct(x=True)) != state_key(Spot(x=1))
