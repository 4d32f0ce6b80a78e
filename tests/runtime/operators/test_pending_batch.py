from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.operators import pending_batch
from opchain.runtime.operators.pending_batch import CombiningBatch, PendingBatch
from opchain.runtime.state.keys.key_identity import key_identity


class Target:
    """Keeps copies of the batches that it receives."""

    def __init__(self) -> None:
        self.batches: list[Any] = []

    def write_batch(self, values: Any, timestamps: Any, keys: Any) -> None:
        copies = [None if column is None else list(column) for column in (values, timestamps, keys)]
        self.batches.append(tuple(copies))


@pytest.mark.parametrize(
    ("carries", "select", "expected"),
    [
        (False, None, ([1, 2], None, None)),
        (True, None, ([1, 2], [10, None], None)),
        (False, str, ([1, 2], None, ["1", "2"])),
        (True, str, ([1, 2], [10, None], ["1", "2"])),
    ],
)
def test_timestamps_and_keys_are_collected_if_the_target_needs_them(
    carries: bool, select: Any, expected: tuple[Any, ...]
) -> None:
    target = Target()
    batch = PendingBatch(target, carries_timestamps=carries, select_key=select)
    batch.append(1, 10)
    batch.append(2, None)
    batch.flush()
    assert target.batches == [expected]


def test_flush_keeps_the_list_objects_that_generated_code_uses() -> None:
    batch = PendingBatch(Target(), carries_timestamps=True, select_key=str)
    lists = batch.values, batch.timestamps, batch.keys
    batch.append(1, 2)
    batch.flush()
    batch.append(3, 4)
    assert (batch.values, batch.timestamps, batch.keys) == ([3], [4], ["3"])
    assert all(
        one is other
        for one, other in zip(lists, (batch.values, batch.timestamps, batch.keys), strict=True)
    )


@pytest.mark.parametrize("end", ["flush", "finish"])
def test_an_empty_batch_is_not_written(end: str) -> None:
    target = Target()
    batch = PendingBatch(target, carries_timestamps=False, select_key=None)
    getattr(batch, end)()
    batch.append(1, None)
    getattr(batch, end)()
    getattr(batch, end)()
    assert target.batches == [([1], None, None)]


def test_a_failing_key_selector_leaves_no_partial_record() -> None:
    target = Target()
    batch = PendingBatch(target, carries_timestamps=True, select_key=lambda value: 1 // value)
    with pytest.raises(ZeroDivisionError):
        batch.append(0, 5)
    batch.append(1, 6)
    batch.flush()
    assert target.batches == [([1], [6], [1])]


def combining(target: Target, select: Any, reduce: Any, *, carries: bool = False) -> CombiningBatch:
    return CombiningBatch(
        target,
        carries_timestamps=carries,
        select_key=select,
        reduce=reduce,
        first=None,
        identity=key_identity(),
    )


def test_records_of_a_key_are_combined_in_order_and_sent_with_the_key() -> None:
    target = Target()
    batch = combining(target, lambda word: word[0], lambda a, b: a + b, carries=True)
    for word in ("ab", "cd", "ae", "ce", "af"):
        batch.append(word, 7)
    batch.flush()
    assert target.batches == []
    batch.finish()
    assert target.batches == [
        ([("a", "abaeaf"), ("c", "cdce")], [None, None], ["a", "c"]),
    ]
    batch.finish()
    assert len(target.batches) == 1


def test_keys_are_distinguished_as_in_java() -> None:
    target = Target()
    batch = combining(target, lambda value: value, lambda a, b: (a, b))
    for value in (1, True, 1.0, [1], [1]):
        batch.append(value, None)
    batch.finish()
    ((pairs, _, keys),) = target.batches
    assert [type(key) for key in keys] == [int, bool, float, list]
    assert pairs[-1] == ([1], ([1], [1]))


def test_combined_records_are_flushed_when_there_are_too_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_batch, "COMBINED_KEYS", 3)
    target = Target()
    batch = combining(target, lambda value: value, max)
    for value in (1, 2):
        batch.append(value, None)
    batch.flush()
    assert target.batches == []
    batch.append(3, None)
    batch.flush()
    batch.append(1, None)
    batch.finish()
    assert [keys for _, _, keys in target.batches] == [[1, 2, 3], [1]]


@pytest.mark.parametrize(("key_field", "expected"), [(0, ("a", 3)), (1, (3, "a"))])
def test_combined_sums_are_sent_as_pairs(key_field: int, expected: Any) -> None:
    target = Target()
    batch = CombiningBatch(
        target,
        carries_timestamps=False,
        select_key=lambda pair: pair[key_field],
        reduce=max,
        first=None,
        identity=key_identity(),
    )
    batch.keep_sums(("sum", "key") if key_field else ("key", "sum"))["a"] = 3
    batch.finish()
    assert target.batches == [([("a", expected)], None, ["a"])]


def test_keys_that_rarely_repeat_are_passed_on_uncombined_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_batch, "COMBINED_KEYS", 4)
    monkeypatch.setattr(pending_batch, "PASSED_ON", 3)
    target = Target()
    batch = combining(target, lambda pair: pair[0], max)
    keys = batch.count_keys(("key", "sum"))
    sent = []
    for some in ("abca", "de", "ff", "gg", "gh"):
        keys.extend(some)
        batch.flush()
        sent.append([list(pairs) for pairs, _, _ in target.batches])
        target.batches.clear()
    batch.finish()
    sent.append([list(pairs) for pairs, _, _ in target.batches])
    assert sent == [
        [],
        [[("a", ("a", 2)), ("b", ("b", 1)), ("c", ("c", 1)), ("d", ("d", 1)), ("e", ("e", 1))]],
        [[("f", ("f", 1)), ("f", ("f", 1))]],
        [[("g", ("g", 1)), ("g", ("g", 1))]],
        [],
        [[("g", ("g", 1)), ("h", ("h", 1))]],
    ]
