from __future__ import annotations

import decimal
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.connectors.data_generator import (
    RandomBoolean,
    RandomDecimal,
    RandomFloat,
    RandomInteger,
    RandomText,
    RowGenerator,
    SequenceGenerator,
    SometimesNull,
    _mixed,
    draw,
    seed_of,
)

MANY = range(2000)


def test_draws_are_those_of_splitmix64() -> None:
    # The first three outputs for the state 1234567, as published with the algorithm.
    step = 0x9E3779B97F4A7C15
    assert [_mixed(1234567 + number * step) for number in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_draws_are_the_same_in_every_version() -> None:
    assert [draw(seed_of("word_id"), index) % 18 for index in range(6)] == [11, 0, 0, 2, 12, 14]


@given(seed=st.integers(0, 2**64 - 1), bounds=st.tuples(st.integers(), st.integers()))
def test_integers_are_within_their_bounds(seed: int, bounds: tuple[int, int]) -> None:
    least, most = sorted(bounds)
    of = RandomInteger(seed, least, most)
    assert all(least <= of.value(index) <= most for index in range(20))


def test_integers_are_evenly_distributed() -> None:
    of = RandomInteger(seed_of("a"), 0, 9)
    counts = [0] * 10
    for index in MANY:
        counts[of.value(index)] += 1
    assert min(counts) > 140
    assert max(counts) < 260
    assert 900 < sum(RandomBoolean(seed_of("b")).value(index) for index in MANY) < 1100


@given(seed=st.integers(0, 2**64 - 1))
def test_floats_are_distributed_over_ranges_of_any_width(seed: int) -> None:
    of = RandomFloat(seed, -1.7e308, 1.7e308)
    values = [of.value(index) for index in range(100)]
    assert min(values) < 0 < max(values)
    assert all(-1.7e308 <= value <= 1.7e308 for value in values)


def test_decimals_have_their_scale() -> None:
    of = RandomDecimal(1, decimal.Decimal("-1.50"), decimal.Decimal("2.25"), 2)
    values = [of.value(index) for index in MANY]
    assert {value.as_tuple().exponent for value in values} == {-2}
    assert min(values) == decimal.Decimal("-1.50")
    assert max(values) == decimal.Decimal("2.25")


def test_decimals_may_have_more_digits_than_pythons_decimal_context() -> None:
    least, most = decimal.Decimal(f"{'1' * 36}.00"), decimal.Decimal(f"{'1' * 36}.03")
    of = RandomDecimal(1, least, most, 2)
    values = {str(of.value(index)) for index in MANY}
    assert values == {f"{'1' * 36}.0{cents}" for cents in range(4)}


@pytest.mark.parametrize("bits", [64, 65, 127, 128, 200])
def test_integers_are_distributed_over_ranges_of_any_width(bits: int) -> None:
    of = RandomInteger(seed_of("a"), 0, 2**bits - 1)
    counts = [0] * 4
    for index in MANY:
        counts[of.value(index) >> (bits - 2)] += 1
    assert min(counts) > len(MANY) / 5


@pytest.mark.parametrize("length", [0, 1, 16, 17, 100])
def test_texts_have_their_length(length: int) -> None:
    of = RandomText(seed_of("comments"), length)
    texts = [of.value(index) for index in range(50)]
    assert {len(text) for text in texts} == {length}
    assert all(set(text) <= set("0123456789abcdef") for text in texts)
    if length >= 16:
        assert len(set(texts)) == 50


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(int, 7), (float, 7.0), (str, "7"), (decimal.Decimal, decimal.Decimal(7))],
)
def test_a_sequence_counts_in_any_type(kind: Any, expected: Any) -> None:
    value = SequenceGenerator(5, kind).value(2)
    assert value == expected
    assert type(value) is type(expected)


def test_null_values_have_the_configured_frequency() -> None:
    of = SometimesNull(seed_of("null a"), 0.25, SequenceGenerator(0))
    values = [of.value(index) for index in MANY]
    assert 400 < values.count(None) < 600
    assert all(value in (None, index) for index, value in enumerate(values))


def test_rows_have_field_names_and_can_be_pickled() -> None:
    generate = RowGenerator((("id", SequenceGenerator(1)), ("flag", RandomBoolean(3))))
    row = pickle.loads(pickle.dumps(generate))(4)
    assert (row.id, row[0], row.flag) == (5, 5, generate(4).flag)
