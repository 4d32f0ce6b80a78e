"""What is known of a completed checkpoint: the file `chk-<epoch>/_metadata`.

It is JSON, written by one `publish`: a checkpoint is complete from the moment that the file is there.
State lies in files of its own, below `shared/`, to which checkpoints refer by name, size and checksum; a file
may belong to many checkpoints. Bytes are base64. A new optional field leaves FORMAT_VERSION; a
change that an old reader would misread raises it.

The classes are plain dataclasses, so that executors can import this module; pydantic checks a file
when it is read, on the driver.

Flink: `CheckpointMetadata`, `OperatorState`, `MetadataV3Serializer`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from opchain.runtime.checkpoint.state_files import TaskState
from opchain.runtime.checkpoint.storage import CheckpointStorage
from opchain.runtime.errors import CorruptCheckpointError

FORMAT_VERSION = 1

METADATA = "_metadata"


@dataclass(frozen=True, slots=True)
class StateDescription:
    """One state of an operator: its name, the kind of its descriptor, and its type as text.

    `kind` is what snapshots say: the name of a descriptor's class, `table` for a table of the operator's
    own, `timers`, `list`, `union list`, `broadcast`. `type` is empty where there is none to compare.
    """

    name: str
    kind: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """An operator that has state. Its subtask s ran in task `first_task + s`."""

    operator_id: str
    name: str
    call_site: str
    first_task: int
    parallelism: int
    max_parallelism: int
    uid: str | None = None
    is_keyed: bool = False
    states: tuple[StateDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """One task: where its state is, and what else it wants back, which nobody else looks into.

    The rest (watermark valves, channel selectors) is given back to the same task at the same parallelism.
    """

    task: int
    vertex_id: str
    subtask: int
    state: TaskState
    rest: bytes = b""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """How far a source has been read, as JSON of the source's own."""

    source: str
    position: Any


@dataclass(frozen=True, slots=True)
class Committable:
    """What a sink has prepared in this epoch and commits once the checkpoint is complete."""

    operator_id: str
    subtask: int
    handle: bytes


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """A completed checkpoint or a savepoint.

    `epoch` is its number. `timestamp_ms` is when it was begun. `plan` is the job's plan in the form of
    `opchain plan --format json`, None where none was given.
    """

    epoch: int
    timestamp_ms: int
    job_name: str
    run_id: str
    operators: tuple[OperatorMetadata, ...] = ()
    tasks: tuple[TaskMetadata, ...] = ()
    sources: tuple[SourcePosition, ...] = ()
    committables: tuple[Committable, ...] = ()
    plan: dict[str, Any] | None = None
    kind: Literal["checkpoint", "savepoint"] = "checkpoint"
    max_parallelisms: dict[str, int] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def tasks_of(self, operator: OperatorMetadata) -> list[TaskState]:
        """The state of the tasks that ran an operator, in the order of subtasks."""
        by_task = {task.task: task.state for task in self.tasks}
        return [by_task[operator.first_task + subtask] for subtask in range(operator.parallelism)]
