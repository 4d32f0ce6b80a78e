from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Row
from opchain.runtime.state.disk.disk_entries import decoded_key, is_decodable, key_bytes
from opchain.runtime.state.keys.key_identity import state_key

UTC = dt.timezone.utc
PLAIN = st.one_of(
    st.text(),
    st.integers(),
    st.binary(),
    st.dates(),
    st.timedeltas(),
    st.uuids(),
)
KEYS = st.recursive(
    st.one_of(
        PLAIN,
        st.booleans(),
        st.floats(),
        st.decimals(allow_nan=False),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
        st.times(),
    ),
    lambda keys: st.tuples(keys) | st.tuples(keys, keys) | st.lists(keys, min_size=1, max_size=2),
    max_leaves=4,
)


class Colour(enum.Enum):
    RED = 1


@given(KEYS, KEYS)
def test_key_bytes_are_equal_exactly_if_state_keys_are(first: Any, second: Any) -> None:
    one, other = state_key(first), state_key(second)
    assert (key_bytes(one) == key_bytes(other)) == (one == other)


@given(st.one_of(PLAIN, st.tuples(PLAIN, PLAIN | st.none())))
def test_plain_keys_are_decoded_from_their_bytes(key: Any) -> None:
    found = key_bytes(key)
    assert is_decodable(found)
    assert decoded_key(found) == key
    assert type(decoded_key(found)) is type(key)


@pytest.mark.parametrize(
    "key",
    [True, 1.5, float("nan"), [1], decimal.Decimal("1.50"), Colour.RED, Row(a=1), (1, 2.0)],
    ids=repr,
)
def test_other_keys_are_not_decodable(key: Any) -> None:
    assert not is_decodable(key_bytes(state_key(key)))


def test_the_identity_of_parts_does_not_matter() -> None:
    text, other = (bytes([97, 98]).decode() for _ in range(2))
    assert text is not other
    assert key_bytes((text, text)) == key_bytes((text, other))


def test_times_in_different_zones_are_equal_as_in_python() -> None:
    zone = dt.timezone(dt.timedelta(hours=1))
    noon, one = dt.time(12, tzinfo=UTC), dt.time(13, tzinfo=zone)
    assert state_key(noon) == state_key(one)
    assert key_bytes(state_key(noon)) == key_bytes(state_key(one))
    assert key_bytes(state_key(dt.time(12))) != key_bytes(state_key(noon))


def test_adjacent_parts_are_not_confused() -> None:
    keys = [("a", "bc"), ("ab", "c"), ("abc",), "abc", b"abc", ("a", ("b", "c"))]
    assert len({key_bytes(key) for key in keys}) == len(keys)
    assert key_bytes(uuid.UUID(int=1)) != key_bytes(1)
