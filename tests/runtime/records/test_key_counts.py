from __future__ import annotations

import sys
from array import array
from collections import Counter
from typing import Any

import pytest
from forms import run_form, seen
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.records import key_counts
from opchain.runtime.records.key_counts import KeyCounts

pytest.importorskip("pyarrow")


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_counts, "KEYS_BEFORE_ARROW", 4)
    monkeypatch.setattr(key_counts, "KEYS_IN_CACHE", 2)
    monkeypatch.setattr(key_counts, "MOST_KEYS", 6)
    monkeypatch.setattr(key_counts, "MOST_INTS", 6)


BATCHES = st.lists(
    st.lists(st.integers(-3, 3) | st.integers(), min_size=1)
    | st.lists(st.sampled_from("abcde") | st.text(), min_size=1)
)
WITHOUT_TEXT = ["\ud800", "a", "a"]
"""Half a character is not a text to Arrow."""


def batches_of_one_type(batches: list[list[Any]], kind: type) -> list[list[Any]]:
    return [batch for batch in batches if batch[0].__class__ is kind]


@pytest.mark.parametrize("kind", [int, str])
@given(batches=BATCHES)
def test_keys_are_counted_and_ordered_by_first_occurrence(
    kind: type, batches: list[list[Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_counts, "KEYS_BEFORE_ARROW", 4)
        patch.setattr(key_counts, "KEYS_IN_CACHE", 2)
        patch.setattr(key_counts, "MOST_KEYS", 6)
        expected: Counter[Any] = Counter()
        counts = KeyCounts()
        for batch in batches_of_one_type(batches, kind):
            expected.update(batch)
            counts.add(batch)
    counts.settle()
    assert list(counts.counts.items()) == list(expected.items())


FAR_APART = st.sampled_from([-(1 << 63), -(1 << 40), 1 << 40, (1 << 63) - 1])


@given(
    batches=st.lists(
        st.tuples(
            st.lists(st.integers(-3, 3), min_size=1)
            | st.lists(st.integers(-3, 3) | FAR_APART, min_size=1),
            st.booleans(),
        )
    )
)
def test_arrays_and_lists_are_counted_in_the_order_of_their_batches(
    batches: list[tuple[list[int], bool]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_counts, "KEYS_BEFORE_ARROW", 12)
        patch.setattr(key_counts, "KEYS_IN_CACHE", 2)
        patch.setattr(key_counts, "MOST_KEYS", 16)
        patch.setattr(key_counts, "MOST_INTS", 8)
        expected: Counter[Any] = Counter()
        counts = KeyCounts()
        for batch, is_array in batches:
            expected.update(batch)
            counts.add(array("q", batch) if is_array else batch)
    counts.settle()
    assert not counts.collects
    assert list(counts.counts.items()) == list(expected.items())


def counts_after(*batches: list[Any]) -> KeyCounts:
    counts = KeyCounts()
    for batch in batches:
        counts.add(batch)
    return counts


FIRST: list[Any] = ["a", "b", "a", "b"]


@pytest.mark.usefixtures("small_limits")
def test_batches_are_collected_until_there_are_enough_keys() -> None:
    counts = counts_after(FIRST, ["a", "c", "c"])
    assert counts.counts == {"a": 2, "b": 2}
    counts.add(["c", "c", "a"])
    assert counts.counts == {"a": 4, "b": 2, "c": 4}


@pytest.mark.usefixtures("small_limits")
def test_long_keys_are_counted_when_their_bytes_reach_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_counts, "MOST_BYTES", 1_000)
    assert counts_after(FIRST, ["a" * 1_000] * 2).counts["a" * 1_000] == 2


@pytest.mark.usefixtures("small_limits")
def test_keys_that_fit_into_the_cache_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_counts, "KEYS_IN_CACHE", 4)
    assert counts_after(FIRST, ["c", "c"]).counts["c"] == 2


@pytest.mark.usefixtures("small_limits")
def test_keys_that_hardly_repeat_are_no_longer_collected() -> None:
    counts = counts_after(FIRST, list("uvwxyz"), ["a"])
    assert counts.counts == {"a": 3, "b": 2, **dict.fromkeys("uvwxyz", 1)}


@pytest.mark.usefixtures("small_limits")
def test_arrays_that_hardly_repeat_are_no_longer_collected() -> None:
    counts = KeyCounts()
    counts.add(array("q", [1, 2, 1]))
    assert counts.collects
    counts.add(array("q", [3, 4, 5]))
    counts.add(array("q", [1]))
    assert not counts.collects
    assert counts.counts == {1: 3, 2: 1, 3: 1, 4: 1, 5: 1}


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("batch", [WITHOUT_TEXT, [2**63, 1, 2**63]])
def test_keys_that_arrow_cannot_hold_are_counted_by_a_dictionary(batch: list[Any]) -> None:
    first: list[Any] = FIRST if batch is WITHOUT_TEXT else [1, 2, 1, 2]
    counts = counts_after(first, first[:1], batch)
    assert list(counts.counts.items()) == list(Counter([*first, *first[:1], *batch]).items())


@pytest.mark.usefixtures("small_limits")
def test_without_pyarrow_all_keys_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert counts_after(FIRST, FIRST).counts == {"a": 4, "b": 4}


@pytest.mark.usefixtures("small_limits")
def test_generated_and_interpreted_jobs_have_the_same_counts() -> None:
    def draw(env: Any) -> None:
        ones = env.from_sequence(0, 99).map(lambda x: (x * x % 31, 1))
        seen(ones.key_by(lambda it: it[0]).reduce(lambda a, b: (a[0], a[1] + b[1])), "counts")

    settings: Any = {"mode": "BATCH", "parallelism": 2, "batch_size": 7}
    gathered = run_form(draw, **settings)
    assert gathered.subtasks("counts") == run_form(draw, "interpreted", **settings).subtasks(
        "counts"
    )
    assert dict(gathered.records("counts")) == Counter(x * x % 31 for x in range(100))
