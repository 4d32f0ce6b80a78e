from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
    redistribute,
    with_changes,
)

GROUPS = 8


def given_out(snapshots: list[OperatorSnapshot], parallelism: int) -> list[OperatorSnapshot]:
    return [
        redistribute(snapshots, key_group_range(GROUPS, parallelism, subtask), parallelism, subtask)
        for subtask in range(parallelism)
    ]


def lists(mode: ListMode, *parts: list[bytes]) -> list[OperatorSnapshot]:
    return [
        OperatorSnapshot(operator=OperatorStateSnapshot(lists={"l": (mode, part)}))
        for part in parts
    ]


@given(st.integers(1, 8), st.integers(1, 8))
def test_each_key_group_is_assigned_to_the_subtask_that_owns_it(before: int, after: int) -> None:
    snapshots = [
        OperatorSnapshot(
            keyed={group: b"k%d" % group for group in key_group_range(GROUPS, before, index)},
            timers={group: b"t%d" % group for group in key_group_range(GROUPS, before, index)},
        )
        for index in range(before)
    ]
    for subtask, share in enumerate(given_out(snapshots, after)):
        owned = list(key_group_range(GROUPS, after, subtask))
        assert sorted(share.keyed) == sorted(share.timers) == owned
        assert share.keyed[owned[0]] == b"k%d" % owned[0]


def test_split_lists_keep_their_subtask_at_the_same_parallelism() -> None:
    snapshots = lists(ListMode.SPLIT, [b"1", b"2", b"3"], [])
    assert [s.operator.lists["l"][1] for s in given_out(snapshots, 2)] == [[b"1", b"2", b"3"], []]


@given(
    st.lists(st.lists(st.binary(max_size=1), max_size=4), min_size=1, max_size=4), st.integers(1, 6)
)
def test_split_lists_are_distributed_evenly(parts: list[list[bytes]], after: int) -> None:
    if len(parts) == after:
        return
    shares = [s.operator.lists["l"][1] for s in given_out(lists(ListMode.SPLIT, *parts), after)]
    assert [e for share in shares for e in share] == [e for part in parts for e in part]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_each_subtask_gets_the_whole_union_list() -> None:
    for after in (1, 2, 3):
        for share in given_out(lists(ListMode.UNION, [b"1"], [b"2"]), after):
            assert share.operator.lists["l"] == (ListMode.UNION, [b"1", b"2"])


def test_a_list_of_a_single_subtask_is_distributed_too() -> None:
    snapshots = [OperatorSnapshot(), *lists(ListMode.SPLIT, [b"1", b"2"])]
    shares = given_out(snapshots, 1)
    assert shares[0].operator.lists["l"] == (ListMode.SPLIT, [b"1", b"2"])


def test_each_subtask_gets_a_copy_of_each_broadcast_state() -> None:
    snapshots = [
        OperatorSnapshot(operator=OperatorStateSnapshot(maps={"m": b"of 0"})),
        OperatorSnapshot(operator=OperatorStateSnapshot(maps={"m": b"of 1", "n": b"n"})),
    ]
    maps = [share.operator.maps for share in given_out(snapshots, 3)]
    assert maps == [
        {"m": b"of 0", "n": b"n"},
        {"m": b"of 1", "n": b"n"},
        {"m": b"of 0", "n": b"n"},
    ]


def test_without_snapshots_there_is_no_state() -> None:
    assert given_out([], 2) == [OperatorSnapshot(), OperatorSnapshot()]


def test_a_chain_starts_with_its_last_full_snapshot() -> None:
    old = OperatorSnapshot({1: b"old"}, {1: b"old"})
    whole = OperatorSnapshot({1: b"a"}, {2: b"t"})
    state = OperatorStateSnapshot(maps={"rules": b"new"})
    changes = OperatorSnapshot({1: b"b", 0: b"c"}, {}, state, is_changes=True)
    assert with_changes([old, whole, changes, changes]) == OperatorSnapshot(
        {0: b"cc", 1: b"abb"}, {2: b"t"}, state
    )
    assert with_changes([changes, changes]).is_changes
