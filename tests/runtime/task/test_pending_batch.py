from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from opchain.runtime.state.key_hashers import hasher_named
from opchain.runtime.state.key_identity import key_identity
from opchain.runtime.task import pending_batch
from opchain.runtime.task.pending_batch import CombiningBatch, PendingBatch

if TYPE_CHECKING:
    from collections.abc import Sequence


class Target:
    """Keeps copies: a target must not keep the lists."""

    def __init__(self) -> None:
        self.batches: list[Any] = []

    def write_batch(
        self, values: Sequence[Any], timestamps: Sequence[Any] | None, keys: Sequence[Any] | None
    ) -> None:
        self.batches.append((list(values), timestamps and list(timestamps), keys and list(keys)))


def combining(target: Target, java_class: str | None = None) -> CombiningBatch:
    hasher = None if java_class is None else hasher_named(java_class)
    return CombiningBatch(
        target,
        carries_timestamps=True,
        select_key=itemgetter(0),
        reduce=lambda one, other: (one[0], one[1] + other[1]),
        identity=key_identity(hasher),
    )


@pytest.mark.parametrize("carries_timestamps", [True, False])
@pytest.mark.parametrize("select_key", [None, itemgetter(0)])
def test_a_batch_has_the_columns_that_its_target_takes(
    carries_timestamps: bool, select_key: Any
) -> None:
    target = Target()
    batch = PendingBatch(target, carries_timestamps=carries_timestamps, select_key=select_key)
    batch.append("ab", 5)
    batch.append("cd", None)
    assert target.batches == []
    batch.flush()
    batch.finish()
    timestamps = [5, None] if carries_timestamps else None
    keys = ["a", "c"] if select_key else None
    assert target.batches == [(["ab", "cd"], timestamps, keys)]


def test_combining_waits_for_the_end_and_sends_one_record_per_key() -> None:
    target = Target()
    batch = combining(target)
    for record in (("a", 1), ("b", 2), ("a", 3)):
        batch.append(record, 7)
        batch.flush()
    assert target.batches == []
    batch.finish()
    batch.finish()
    assert target.batches == [([("a", 4), ("b", 2)], [None, None], ["a", "b"])]


def test_combining_lets_go_when_there_are_too_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_batch, "COMBINED_KEYS", 2)
    target = Target()
    batch = combining(target)
    for key in "aabc":
        batch.append((key, 1), None)
        batch.flush()
    batch.finish()
    assert [values for values, _, _ in target.batches] == [[("a", 2), ("b", 1)], [("c", 1)]]


def test_keys_that_python_mixes_up_are_combined_apart_and_sent_as_they_are() -> None:
    target = Target()
    batch = combining(target)
    for key in (1, True, 1.0, True):
        batch.append((key, 1), None)
    batch.finish()
    ((values, _, keys),) = target.batches
    assert list(map(repr, keys)) == ["1", "True", "1.0"]
    assert list(map(repr, values)) == ["(1, 1)", "(True, 2)", "(1.0, 1)"]


def test_keys_of_a_declared_type_are_combined_as_it_says() -> None:
    target = Target()
    batch = combining(target, "Long")
    for key in (1, True):
        batch.append((key, 1), None)
    batch.finish()
    assert target.batches[0][0] == [(1, 2)]
