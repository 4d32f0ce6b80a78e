"""The metadata of a completed checkpoint: the file `chk-<id>/_metadata`.

It is JSON, written by one `publish`. A checkpoint is complete as soon as the file exists (epoch_files.py). State is in
separate files below `shared/`. Checkpoints refer to them by name, size and checksum, and a file may belong to many
checkpoints. The document is

    {"format": "opchain checkpoint", "format_version": 1, "checksum": ..., "checkpoint": {...}}

`checkpoint` has the fields of CheckpointMetadata, with bytes as URL-safe base64. Its field `epoch` is the id of the
checkpoint. The checksum is that of its compact
JSON with sorted keys. A signed document also has the field `key`, the identity of the key, and its checksum is a
signature (see checkpoint_key.py). A new field with a default does not change FORMAT_VERSION. A change that an old reader
would misread increases it.

The classes are plain dataclasses, so that executors can import this module. pydantic validates a file when the driver
reads it.

Flink: `CheckpointMetadata`, `OperatorState`, `MetadataV3Serializer`.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from opchain.runtime.checkpoint.checkpoint_key import SETTING as KEY_SETTING
from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey, CheckpointKeyError
from opchain.runtime.checkpoint.epoch import RecordedTask  # noqa: TC001 - its fields' types are read at run time
from opchain.runtime.checkpoint.epoch_files import (
    checkpoint_name,
    completed_checkpoints,
    last_file,
    metadata_name,
)
from opchain.runtime.checkpoint.state_files import TaskState  # noqa: TC001 - its fields' types are read at run time
from opchain.runtime.checkpoint.storage import CheckpointStorage, StoredFile, checksum
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping


FORMAT = "opchain checkpoint"
FORMAT_VERSION = 1

NO_BATCH = -1
"""The number of the micro-batch of a checkpoint without Spark's log: sources are read from their beginning."""

SourceKind = Literal["bounded", "DataFrame", "positions"]
"""Bounded, or what stores the offset of an unbounded source: Spark itself (DataFrame), or opchain's clock source
(positions)."""

_METADATA = "_metadata"
_FILE_NAME = re.compile(r"shared/[0-9]+/(?!\.\.?$)[^/\\\0]+")
"""The pattern of the names of state files (see state_files.FOLDER). No other file is written, copied or deleted."""


class _Checked:
    """The configuration of pydantic for the classes below."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "ser_json_bytes": "base64",
        "val_json_bytes": "base64",
        "alias_generator": lambda name: "epoch" if name == "checkpoint_id" else name,
    }


@dataclass(frozen=True, slots=True)
class StateDescription(_Checked):
    """One state of an operator: its name, the kind of its descriptor, and its type as text.

    `kind` is the name of a descriptor's class, `table` for a table that the operator uses directly, `timers`, `list`,
    `union list` or `broadcast`. `type` is empty if it is not known.
    """

    name: str
    kind: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class OperatorMetadata(_Checked):
    """An operator that has state. Its subtask s ran in task `first_task + s`.

    `key_types` has the type of the key of each keyed input, as text. It is empty if the types are not known.
    """

    operator_id: str
    name: str
    call_site: str
    first_task: int
    parallelism: int
    max_parallelism: int
    uid: str | None = None
    is_keyed: bool = False
    states: tuple[StateDescription, ...] = ()
    key_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskMetadata(_Checked):
    """One task: its state files, and its event time, pickled (epochs/event_time.py).

    `recorded` describes the epoch of the task, if epochs are recorded.
    """

    task: int
    vertex_id: str
    subtask: int
    state: TaskState
    event_time: bytes = b""
    recorded: RecordedTask | None = None


@dataclass(frozen=True, slots=True)
class StoredSource(_Checked):
    """A source of the job. `label` is its name and call site, for messages."""

    operator_id: str
    kind: SourceKind
    label: str


@dataclass(frozen=True, slots=True)
class EpochInput(_Checked):
    """The input of an epoch. The next epoch continues from it.

    Attributes:
        batch: The number of the micro-batch in Spark's log, or NO_BATCH.
        clock_ms: The processing time during the epoch.
        next_timer_ms: The time of the first processing-time timer; None if no timer is registered.
        unbounded: The unbounded sources, in the order of Spark's log.
        bounded: The bounded sources, which have been read.
        read_to: The offset of the micro-batch, if the job ran in process. Spark has it in its log.
    """

    batch: int | None = None
    clock_ms: int | None = None
    next_timer_ms: int | None = None
    unbounded: tuple[StoredSource, ...] | None = None
    bounded: tuple[StoredSource, ...] = ()
    read_to: dict[str, Any] | None = None


NO_INPUT = EpochInput()


@dataclass(frozen=True, slots=True)
class Committable(_Checked):
    """The output that a sink has prepared in this epoch, and commits when the checkpoint is complete."""

    operator_id: str
    subtask: int
    handle: bytes


@dataclass(frozen=True, slots=True)
class CheckpointMetadata(_Checked):
    """A completed checkpoint or a savepoint.

    `checkpoint_id` is its number. `timestamp_ms` is when it began. `plan` is the job's plan in the form of
    `opchain plan --format json`, if there is one.
    """

    checkpoint_id: int
    timestamp_ms: int
    job_name: str
    run_id: str
    operators: tuple[OperatorMetadata, ...] = ()
    tasks: tuple[TaskMetadata, ...] = ()
    input: EpochInput = NO_INPUT
    committables: tuple[Committable, ...] = ()
    plan: dict[str, Any] | None = None
    kind: Literal["checkpoint", "savepoint"] = "checkpoint"

    def tasks_of(self, operator: OperatorMetadata) -> list[TaskState]:
        """The state of the tasks that ran an operator, in the order of subtasks."""
        by_task = {task.task: task.state for task in self.tasks}
        return [by_task[operator.first_task + subtask] for subtask in range(operator.parallelism)]

    @property
    def files(self) -> dict[str, StoredFile]:
        """All state files that the checkpoint refers to, by name."""
        return {file.name: file for task in self.tasks for file in task.state.files}

    @property
    def recorded_files(self) -> dict[str, StoredFile]:
        """The files with the recorded input of sources, by name. There are none if the epoch was not recorded."""
        inputs = (None if task.recorded is None else task.recorded.input for task in self.tasks)
        return {file.name: file for file in inputs if file is not None}

    @property
    def all_files(self) -> dict[str, StoredFile]:
        """All files that must exist as long as the checkpoint exists, by name."""
        return {**self.files, **self.recorded_files}

    def with_files(self, files: Mapping[str, StoredFile]) -> CheckpointMetadata:
        """The same checkpoint with references to copies of its files. `files` has the copies by name."""
        tasks = []
        for task in self.tasks:
            state = replace(task.state, files=tuple(files[file.name] for file in task.state.files))
            recorded = task.recorded
            if recorded is not None and recorded.input is not None:
                recorded = replace(recorded, input=files[recorded.input.name])
            tasks.append(replace(task, state=state, recorded=recorded))
        return replace(self, tasks=tuple(tasks))


def read_metadata(storage: CheckpointStorage, checkpoint_id: int) -> CheckpointMetadata:
    """The checkpoint of an epoch.

    Raises:
        CorruptCheckpointError: It is missing, altered, or of a foreign format.
    """
    last = last_file(storage, checkpoint_id)
    if last is None or last.fenced_by is not None:
        raise CorruptCheckpointError(storage.full_name(metadata_name(checkpoint_id)), "is missing")
    metadata = decode(last.data, storage.full_name(last.name), storage.key)
    if metadata.checkpoint_id != checkpoint_id:
        raise CorruptCheckpointError(
            storage.full_name(last.name), f"is the metadata of checkpoint {metadata.checkpoint_id}"
        )
    return metadata


def read_savepoint(storage: CheckpointStorage) -> CheckpointMetadata:
    """The savepoint whose metadata is at the top of a storage; see `read_metadata`."""
    name = _METADATA
    try:
        data = storage.read(name)
    except FileNotFoundError:
        raise CorruptCheckpointError(storage.full_name(name), "is missing") from None
    return decode(data, storage.full_name(name), storage.key)


def latest_checkpoint(storage: CheckpointStorage) -> CheckpointMetadata | None:
    """The last completed checkpoint in a storage, or None.

    Raises:
        CorruptCheckpointError: Its metadata can't be read. The message names the previous checkpoint.
    """
    numbers = completed_checkpoints(storage)
    if not numbers:
        return None
    try:
        return read_metadata(storage, numbers[-1])
    except CorruptCheckpointError as error:
        before = (
            f"checkpoint {numbers[-2]} is complete: to resume from it, set execution.state-recovery.path="
            f"{storage.url}/{checkpoint_name(numbers[-2])} and leave the directory unchanged"
            if len(numbers) > 1
            else "there is no checkpoint before it"
        )
        raise CorruptCheckpointError(error.name, f"{error.problem}; {before}") from error


def encode(metadata: CheckpointMetadata, key: CheckpointKey | None = None) -> bytes:
    """The content of a metadata file, signed if there is a key. The same checkpoint gives the same bytes."""
    checkpoint = json.loads(_adapter().dump_json(metadata, by_alias=True))
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **({} if key is None else {"key": key.identity}),
        "checksum": _checksum(checkpoint, key),
        "checkpoint": checkpoint,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def decode(data: bytes, name: str, key: CheckpointKey | None = None) -> CheckpointMetadata:
    """Decodes a metadata file.

    Args:
        data: The content of the file.
        name: The file, for messages.
        key: The key that must have signed it; None if it must not be signed.

    Raises:
        CorruptCheckpointError: It is not metadata, of another version, altered, or inconsistent.
        CheckpointKeyError: It is not signed by `key`, or it is signed and `key` is None.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - the driver has it

    try:
        document = json.loads(data)
        found, version = document["format"], document["format_version"]
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptCheckpointError(
            name, f"is not checkpoint metadata: {type(error).__name__}: {error}"
        ) from None
    if found != FORMAT or version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            name,
            f"is of format {found!r} {version!r}, but this version of opchain reads "
            f"{FORMAT!r} {FORMAT_VERSION}",
        )
    _require_key(document.get("key"), name, key)
    checkpoint = document.get("checkpoint")
    noted = str(document.get("checksum")).encode("utf-8", "replace")
    if not hmac.compare_digest(noted, _checksum(checkpoint, key).encode("ascii")):
        raise CorruptCheckpointError(name, "was altered: its checksum does not match its content")
    try:
        metadata: CheckpointMetadata = _adapter().validate_json(json.dumps(_renewed(checkpoint)))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise CorruptCheckpointError(name, f"is inconsistent: {where}: {problem['msg']}") from None
    except (KeyError, TypeError, ValueError) as error:  # of an earlier version
        raise CorruptCheckpointError(
            name, f"is inconsistent: {type(error).__name__}: {error}"
        ) from None
    for file in metadata.all_files:
        if _FILE_NAME.fullmatch(file) is None:
            raise CorruptCheckpointError(
                name,
                f"names {file!r} as a file of the checkpoint, but such files are below shared/: "
                "it was not written by a job, do not use it",
            )
    return metadata


def _renewed(checkpoint: Any) -> Any:
    """The fields of a checkpoint. Earlier versions wrote its input as a list of positions with names."""
    if not isinstance(checkpoint, dict) or "sources" not in checkpoint:
        return checkpoint
    tasks = [
        {"event_time" if name == "rest" else name: value for name, value in task.items()}
        for task in checkpoint["tasks"]
    ]
    fields = {**checkpoint, "tasks": tasks}
    found = {item["source"]: item["position"] for item in fields.pop("sources")}
    unbounded = found.get("unbounded sources")
    fields["input"] = {
        "batch": found.get("spark batch"),
        "clock_ms": found.get("clock"),
        "next_timer_ms": found.get("next timer"),
        "unbounded": None if unbounded is None else [_source(*values) for values in unbounded],
        "bounded": [
            _source(operator_id, "bounded", label)
            for operator_id, label in found.get("bounded sources") or ()
        ],
    }
    return fields


def _source(operator_id: str, kind: str, label: str) -> dict[str, str]:
    return {"operator_id": operator_id, "kind": kind, "label": label}


def _require_key(found: Any, name: str, key: CheckpointKey | None) -> None:
    """Checks that a document is signed by `key`, or not signed if `key` is None.

    Raises:
        CheckpointKeyError: The check fails.
    """
    if found is None and key is not None:
        raise CheckpointKeyError(
            f"checkpoint file {name} is not signed, and {KEY_SETTING} accepts checkpoints signed by the key "
            f"{key.identity} alone. To resume from an unsigned checkpoint whose origin you trust, sign a copy of "
            "it: opchain savepoint CHECKPOINT TARGET --sign-with KEY-FILE"
        )
    if found is not None and key is None:
        raise CheckpointKeyError(
            f"checkpoint file {name} is signed by the key {found!r}, but no key is configured: "
            f"set {KEY_SETTING}, or --key-file of a command, to the file of that key"
        )
    if key is not None and found != key.identity:
        raise CheckpointKeyError(
            f"checkpoint file {name} is signed by the key {found!r}, but {KEY_SETTING} has the "
            f"key {key.identity}: use the file of the other key, or do not use this checkpoint"
        )


def _checksum(checkpoint: Any, key: CheckpointKey | None) -> str:
    data = json.dumps(checkpoint, sort_keys=True, separators=(",", ":")).encode()
    return checksum(data) if key is None else key.signature(data, "meta")


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 - executors may not have it

    return TypeAdapter(CheckpointMetadata)
