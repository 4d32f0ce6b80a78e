"""The content of a checkpoint as plain values, to compare checkpoints with different files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.state_files import read_task_state
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_groups import KeyGroupRange
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.state.keys.pyflink_keys import hash_pickled
from opchain.runtime.state.timers.timer_services import TimerServices

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage


def state_in(storage: CheckpointStorage, metadata: CheckpointMetadata) -> dict[str, Any]:
    """The state of each operator by its uid: keyed state, timers of both clocks, and state without key.

    The keys of the job have no declared type.
    """
    found = {}
    for operator in metadata.operators:
        everything = KeyGroupRange(0, operator.max_parallelism - 1)
        tasks = metadata.tasks_of(operator)
        snapshot = read_task_state(storage, tasks, [operator.operator_id], everything, 1, 0).get(
            operator.operator_id
        )
        if snapshot is None:
            continue
        backend = HashMapKeyedStateBackend(operator.max_parallelism, hasher=hash_pickled)
        backend.restore([snapshot.keyed])
        timers = TimerServices(backend, None, hasher=hash_pickled)  # type: ignore[arg-type] - nothing fires
        timers.restore([snapshot.timers])
        found[operator.uid or operator.operator_id] = {
            "keyed": {
                (name, repr(namespace), repr(key_of(key))): contents
                for name, table in backend._tables.items()
                for namespace, entries in table.spaces.items()
                for key, contents in entries.items()
            },
            "timers": {
                (name, clock): sorted(
                    (time, repr(namespace), repr(key_of(key))) for time, namespace, key in queue
                )
                for name, _ in timers.described_services()
                for clock, queue in enumerate(timers._queues_of(name))
            },
            "operator": (snapshot.operator.lists, snapshot.operator.maps),
        }
    return found
