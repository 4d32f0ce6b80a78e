"""What a task's state holds, entry by entry: to be compared, whatever the order and the files it is in."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.state_files import read_operator_state
from opchain.runtime.epochs.epoch_task import EpochTask
from opchain.runtime.epochs.recording import canonical
from opchain.runtime.state.keys.key_groups import key_group_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.checkpoint.state_files import TaskState
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot
    from opchain.runtime.task.stream_task import TaskEnvironment

NO_KEY: Any = object()
"""Stands for the key of state that has none."""

_CLOCKS = ("event time", "processing time")


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One value of state, or one timer.

    Attributes:
        operator: The name of its operator.
        operator_id: Its id.
        name: What it is: a state by its name, a timer by its clock and time.
        key: Whose it is; NO_KEY where it has none.
        namespace: The window, where it is state of one.
        value: What it holds.
    """

    operator: str
    operator_id: str
    name: str
    key: Any
    namespace: Any
    value: Any

    @property
    def place(self) -> tuple[str, str, bytes]:
        """What tells it from all others of its task."""
        whose = b"" if self.key is NO_KEY else canonical((self.key, self.namespace))
        return (self.operator_id, self.name, whose)


def task_contents(
    job: JobProgram,
    task: int,
    state: TaskState,
    storage: CheckpointStorage,
    environment: TaskEnvironment,
) -> dict[tuple[str, str, bytes], StateEntry]:
    """The entries of a task's state, by their places.

    Args:
        job: The task's job, unpickled for this call: state is read by operators of its own.
        task: The task's number.
        state: Where its state is.
        storage: Where the files are.
        environment: What surrounds tasks here.
    """
    reader = EpochTask(job, task, environment)
    vertex = reader.info.vertex
    groups = key_group_range(vertex.max_parallelism, vertex.parallelism, reader.info.subtask)
    found: dict[tuple[str, str, bytes], StateEntry] = {}
    try:
        for operator in reader.chain.operators:
            program, context = operator.program, operator.context
            snapshot = read_operator_state(storage, [state], program.operator_id, groups, 1, 0)
            if snapshot is None:
                continue
            entries = list(_operator_entries(snapshot))
            if context.keyed_state is not None:
                context.keyed_state.restore([snapshot.keyed])
                context.timers.restore([snapshot.timers])
                entries += _keyed_entries(context.keyed_state.snapshot())
                entries += _timer_entries(context.timers.snapshot())
            for name, key, namespace, value in entries:
                entry = StateEntry(program.name, program.operator_id, name, key, namespace, value)
                found[entry.place] = entry
    finally:
        reader.close()
    return found


def _operator_entries(snapshot: OperatorSnapshot) -> Iterator[tuple[str, Any, Any, Any]]:
    for name, (_, elements) in snapshot.operator.lists.items():
        yield f"list state '{name}'", NO_KEY, None, list(map(pickle.loads, elements))
    for name, entries in snapshot.operator.maps.items():
        yield f"broadcast state '{name}'", NO_KEY, None, pickle.loads(entries)


def _keyed_entries(groups: dict[int, bytes]) -> Iterator[tuple[str, Any, Any, Any]]:
    for data in groups.values():
        _, states = pickle.loads(data)
        for name, (_, _, rows) in states.items():
            for _, namespace, key, contents in rows:
                yield f"state '{name}'", key, namespace, contents


def _timer_entries(groups: dict[int, bytes]) -> Iterator[tuple[str, Any, Any, Any]]:
    for data in groups.values():
        _, services = pickle.loads(data)
        for name, domains in services.items():
            for clock, rows in zip(_CLOCKS, domains, strict=True):
                for _, time, namespace, key in rows:
                    yield f"timer '{name}' at {time} in {clock}", key, namespace, time
