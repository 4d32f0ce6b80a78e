"""Chains of state files: written, read at any parallelism, merged, and damaged."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.checkpoint.state_files import (
    RecentFiles,
    TaskState,
    decode,
    encode,
    read_changes,
    read_operator_state,
    read_task_state,
    write_task_state,
)
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.errors import CorruptCheckpointError, InternalError, StateError
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, MapStateDescriptor
from opchain.runtime.program.operator_specs import ReduceSpec
from opchain.runtime.state.keys.key_groups import KeyGroupRange, key_group, key_group_range
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
)
from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATOR = "a" * 32
GROUPS = 16
ALL = KeyGroupRange(0, GROUPS - 1)


def add(total: Any, value: Any) -> Any:
    return total[0], total[1] + value[1]


def harness_of(parallelism: int = 1, subtask: int = 0, **settings: Any) -> Any:
    return KeyedOneInputOperatorHarness(
        ReduceSpec(add),
        lambda record: record[0],
        parallelism=parallelism,
        subtask=subtask,
        max_parallelism=GROUPS,
        tracks_changes=True,
        **settings,
    )


class Task:
    """A subtask that writes its state each epoch, as a base when one is due."""

    def __init__(
        self,
        storage: CheckpointStorage,
        parallelism: int,
        subtask: int,
        restored: list[TaskState] | None = None,
        epoch: int = 0,
    ) -> None:
        self.storage, self.subtask, self.epoch = storage, subtask, epoch
        self.state: TaskState | None = None
        snapshots = None
        if restored is not None:
            groups = key_group_range(GROUPS, parallelism, subtask)
            found = read_operator_state(storage, restored, OPERATOR, groups, parallelism, subtask)
            snapshots = None if found is None else [found]
        self.harness = harness_of(parallelism, subtask, snapshots=snapshots)
        self.harness.open()

    def run_epoch(self, records: list[tuple[int, int]]) -> TaskState:
        self.epoch += 1
        for record in records:
            if self.harness.owns(record[0]):
                self.harness.process_element(record)
        is_base = self.state is None or self.state.needs_base()
        snapshot = self.harness.snapshot() if is_base else self.harness.snapshot_changes()
        self.state = write_task_state(
            self.storage, self.epoch, self.subtask, "0.1", {OPERATOR: snapshot}, self.state
        )
        return self.state

    def totals(self) -> dict[int, int]:
        return {key: value[1] for key, value in self.harness.operator.table.items()}


EPOCHS = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=10), min_size=1, max_size=8
)


@given(EPOCHS, st.lists(st.integers(1, 8), min_size=1, max_size=4))
@settings(max_examples=80)
def test_state_survives_any_changes_of_parallelism(
    epochs: list[list[tuple[int, int]]], parallelisms: list[int]
) -> None:
    pytest.importorskip("fsspec")
    storage = checkpoint_storage("memory://rescale")
    expected: dict[int, int] = {}
    restored: list[TaskState] | None = None
    epoch = 0
    for parallelism in parallelisms:
        tasks = [
            Task(storage, parallelism, subtask, restored, epoch) for subtask in range(parallelism)
        ]
        for records in epochs:
            for key, value in records:
                expected[key] = expected.get(key, 0) + value
            restored = [task.run_epoch(records) for task in tasks]
        epoch += len(epochs)
        restored = pickle.loads(pickle.dumps(restored))
        found = {key: total for task in tasks for key, total in task.totals().items()}
        assert found == expected
    (last,) = [Task(storage, 1, 0, restored, epoch)]
    assert last.totals() == expected


def test_a_chain_has_a_base_and_changes_until_the_changes_outweigh_the_base(
    storage: CheckpointStorage,
) -> None:
    task = Task(storage, 1, 0)
    state = task.run_epoch([(key, 1) for key in range(200)])
    lengths = []
    for epoch in range(60):
        before = state
        state = task.run_epoch([(key, 1) for key in range(epoch % 7, 200, 40)])
        lengths.append(len(state.files))
        assert (len(state.files) == 1) is before.needs_base()
        assert state.files[0].size == state.base_bytes
        assert sum(file.size for file in state.files[1:]) == state.changes_bytes
    assert max(lengths) > 3
    assert lengths.count(1) >= 1


def test_file_names_contain_epoch_task_and_attempt(storage: CheckpointStorage) -> None:
    states = {OPERATOR: OperatorSnapshot({1: b"x"})}
    first = write_task_state(storage, 5, 3, "app-1/77", states)
    again = write_task_state(storage, 5, 3, "app-1/77", states)
    assert first.files[0].name.startswith("shared/5/3-app_1_77-")
    assert first.files[0].name.endswith(".state")
    assert len(set(storage.names())) == 2
    assert first.files[0].checksum == again.files[0].checksum
    assert len(pickle.dumps(first)) < 500


def test_changes_without_a_base_are_refused(storage: CheckpointStorage) -> None:
    with pytest.raises(InternalError, match="task 3 writes changes in epoch 5, but has no base"):
        write_task_state(storage, 5, 3, "0", {OPERATOR: OperatorSnapshot(is_changes=True)})


def test_an_operator_that_writes_all_its_state_is_read_from_the_last_file(
    storage: CheckpointStorage,
) -> None:
    whole = OperatorSnapshot({1: b"old"}, operator=operator_state(b"1", b"2"))
    base = write_task_state(
        storage, 1, 0, "0", {"whole": whole, "changes": OperatorSnapshot({1: b"a"})}
    )
    state = write_task_state(
        storage,
        2,
        0,
        "0",
        {
            "whole": OperatorSnapshot({2: b"new"}, operator=operator_state(b"3")),
            "changes": OperatorSnapshot({1: b"b"}, is_changes=True),
        },
        base,
    )
    found = read_task_state(storage, [state], ["whole", "changes", "none"], ALL, 1, 0)
    assert found["whole"].keyed == {2: b"new"}
    assert found["whole"].operator == operator_state(b"3")
    assert found["changes"].keyed == {1: b"ab"}
    assert "none" not in found
    assert read_operator_state(storage, [state], "none", ALL, 1, 0) is None


def test_an_operator_without_changes_keeps_its_state_beside_one_that_writes_all(
    storage: CheckpointStorage,
) -> None:
    first = {
        "whole": OperatorSnapshot(operator=operator_state(b"1")),
        "changes": OperatorSnapshot({1: b"a"}),
    }
    base = write_task_state(storage, 1, 0, "0", first)
    only_whole = {"whole": OperatorSnapshot(operator=operator_state(b"2"))}
    state = write_task_state(storage, 2, 0, "0", only_whole, base)
    found = read_task_state(storage, [state], ["whole", "changes"], ALL, 1, 0)
    assert found["changes"].keyed == {1: b"a"}
    assert found["whole"].operator == operator_state(b"2")
    assert (state.operators, state.key_groups) == (("whole", "changes"), (1, 1))
    again = write_task_state(storage, 3, 0, "0", first, state)
    assert len(again.files) == 1


def operator_state(*elements: bytes) -> OperatorStateSnapshot:
    return OperatorStateSnapshot(
        {
            "split": (ListMode.SPLIT, list(elements)),
            "union": (ListMode.UNION, list(elements)),
        },
        {"rules": b"rules"},
    )


@pytest.mark.parametrize("after", range(1, 6))
def test_operator_state_is_redistributed_to_any_number_of_subtasks(
    storage: CheckpointStorage, after: int
) -> None:
    tasks = [
        write_task_state(
            storage,
            1,
            task,
            "0",
            {OPERATOR: OperatorSnapshot(operator=operator_state(b"%d" % task))},
        )
        for task in range(3)
    ]
    found = []
    for subtask in range(after):
        groups = key_group_range(GROUPS, after, subtask)
        part = read_operator_state(storage, tasks, OPERATOR, groups, after, subtask)
        assert part is not None
        found += part.operator.lists["split"][1]
        assert part.operator.lists["union"][1] == [b"0", b"1", b"2"]
        assert part.operator.maps == {"rules": b"rules"}
    assert found == [b"0", b"1", b"2"]


def test_files_with_other_key_groups_only_are_not_read(storage: CheckpointStorage) -> None:
    tasks = [
        write_task_state(storage, 1, task, "0", {OPERATOR: OperatorSnapshot({group: b"x"})})
        for task, group in enumerate((2, 9))
    ]
    storage.delete(tasks[1].files[0].name)
    found = read_operator_state(storage, tasks, OPERATOR, KeyGroupRange(0, 7), 2, 0)
    assert found is not None
    assert found.keyed == {2: b"x"}


def test_changes_are_merged_step_by_step_to_keep_chains_short(storage: CheckpointStorage) -> None:
    task = Task(storage, 1, 0)
    state = task.run_epoch([(key, 1) for key in range(3000)])
    written, lengths = 0, []
    for epoch in range(120):
        state = task.run_epoch([(epoch % 50, 1)])
        written += state.files[-1].size
        lengths.append(len(state.files))
        assert state.changes_bytes == sum(file.size for file in state.files[1:])
    assert lengths[:9] == [2, 3, 4, 5, 6, 7, 8, 2, 3]
    assert max(lengths) < 25
    assert written < 8 * state.changes_bytes
    assert len(set(state.marks)) == 32
    assert Task(storage, 1, 0, [state]).totals() == task.totals()


@pytest.mark.parametrize("epochs", [1, 6, 7, 8, 20])
def test_read_changes_returns_the_contents_of_later_files(
    storage: CheckpointStorage, epochs: int
) -> None:
    task = Task(storage, 1, 0)
    task.run_epoch([(key, 1) for key in range(500)])
    known = task.run_epoch([(1, 1)])
    behind = Task(storage, 1, 0, [known], task.epoch)
    for epoch in range(epochs):
        state = task.run_epoch([(epoch, 1), (1, 1)])
    assert state.is_behind(known)
    assert not known.is_behind(state)
    changes = read_changes(storage, state, known)
    assert changes is not None
    behind.harness.operator.apply_changes(changes[OPERATOR])
    assert behind.totals() == task.totals()


def test_read_changes_returns_none_after_a_new_base_or_for_another_chain(
    storage: CheckpointStorage,
) -> None:
    task = Task(storage, 1, 0)
    first = task.run_epoch([(key, 1) for key in range(50)])
    other = Task(storage, 1, 0, [first], task.epoch)
    other.state = first
    lost = other.run_epoch([(1, 1)])
    kept = task.run_epoch([(2, 1)])
    assert read_changes(storage, kept, lost) is None
    assert read_changes(storage, kept, first) is not None
    while len(kept.files) > 1:
        kept = task.run_epoch([(key, 1) for key in range(50)])
    assert read_changes(storage, kept, first) is None


def test_recent_files_are_merged_from_memory(storage: CheckpointStorage) -> None:
    recent = RecentFiles()
    small, large = (
        storage.put(name, b"x" * size) for name, size in (("a/1", 10), ("a/2", 3 << 20))
    )
    data = encode(1, 0, {})
    recent.keep(small, data)
    recent.keep(large, b"y" * large.size)
    storage.delete("a/1")
    assert recent.read(storage, small) == decode(data, "a/1")
    with pytest.raises(CorruptCheckpointError, match="a/2 is not a state file"):
        recent.read(storage, large)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, r"has \d+ bytes, but \d+ were written"),
        (flip, "was altered"),
        (Path.unlink, "is missing"),
    ],
)
@pytest.mark.parametrize("which", [0, 1])
def test_the_error_names_a_damaged_file(
    storage: CheckpointStorage,
    damage: Callable[[Path], None],
    message: str,
    which: int,
) -> None:
    task = Task(storage, 1, 0)
    task.run_epoch([(key, 1) for key in range(50)])
    state = task.run_epoch([(1, 1)])
    path = Path(storage.url) / state.files[which].name
    damage(path)
    with pytest.raises(CorruptCheckpointError, match=f"{path} {message}"):
        read_operator_state(storage, [state], OPERATOR, ALL, 1, 0)


class Moved:
    """A class of the user, which does not exist any more when the state is read."""


def test_a_class_that_cannot_be_imported_is_named_with_operator_and_state(
    storage: CheckpointStorage,
) -> None:
    task = Task(storage, 1, 0)
    task.harness.keyed_state(ListStateDescriptor("fine"), 1).add(5)
    task.harness.keyed_state(MapStateDescriptor("visits"), 1).put(1, Moved())
    state = task.run_epoch([(1, 1)])
    name = f"{Moved.__module__}.{Moved.__qualname__}"
    moved = Moved
    del globals()["Moved"]
    try:
        with pytest.raises(
            StateError,
            match=f"'Keyed Reduce' .*state 'visits' are of the class {name}, which can't",
        ):
            Task(storage, 1, 0, [state])
    finally:
        globals()["Moved"] = moved


def test_a_task_state_knows_its_key_groups(storage: CheckpointStorage) -> None:
    task = Task(storage, 1, 0)
    state = task.run_epoch([(4, 1), (5, 1)])
    groups = sorted({key_group(4, GROUPS), key_group(5, GROUPS)})
    assert state.key_groups == (groups[0], groups[-1])
    assert not state.has_operator_state
