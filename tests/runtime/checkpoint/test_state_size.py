from __future__ import annotations

from typing import Any, cast

import pytest

from opchain.runtime.checkpoint.epoch import CHEAP_S, EntryCount, snapshot_bytes
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
)


class Backend:
    """Has one entry more each time that its entries are counted."""

    def __init__(self) -> None:
        self.asked = 0

    def entry_count(self) -> int:
        self.asked += 1
        return self.asked


def counted(took_s: float, *whole: bool) -> list[int]:
    ticks = iter(range(100))
    count = EntryCount(lambda: next(ticks) * took_s)
    backend = cast("Any", Backend())
    return [count.of(backend, is_whole=is_whole) for is_whole in whole]


@pytest.mark.parametrize(
    ("took_s", "expected"), [(CHEAP_S / 2, [1, 2, 3, 4]), (CHEAP_S * 2, [1, 1, 2, 2])]
)
def test_expensive_entry_counts_are_renewed_only_by_full_snapshots(
    took_s: float, expected: list[int]
) -> None:
    assert counted(took_s, True, False, True, False) == expected


def test_snapshot_bytes_adds_up_all_kinds_of_state() -> None:
    operator = OperatorStateSnapshot({"list": (ListMode.SPLIT, [b"1", b"22"])}, {"map": b"333"})
    snapshot = OperatorSnapshot({0: b"4444", 5: b"55555"}, {1: b"666666"}, operator)
    assert snapshot_bytes(snapshot) == 1 + 2 + 3 + 4 + 5 + 6
    assert snapshot_bytes(OperatorSnapshot()) == 0
