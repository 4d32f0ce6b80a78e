"""Runs a recorded epoch again in this process, from the checkpoint before it.

Sinks and checkpoints write nothing. The replay compares the output of tasks, and their state at the end, with the
recorded epoch. Output is compared by digests, so a replay shows which outputs differ, but not how. State is compared
entry by entry, independent of order and files. A replay can stop a task at its batches, or at the records of one key.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.epoch import Epoch, TaskSnapshot
from opchain.runtime.checkpoint.epoch_files import completed_checkpoints
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    TaskMetadata,
    read_metadata,
)
from opchain.runtime.checkpoint.state_files import TaskState, read_operator_state
from opchain.runtime.checkpoint.storage import CheckpointStorage, OverlayStorage
from opchain.runtime.connectors.simple_sinks import (
    DiscardingSinkFunction,
    DiscardingWriter,
    PrintSinkFunction,
)
from opchain.runtime.epochs.epoch_task import EpochTask
from opchain.runtime.epochs.event_time import epoch_time_ms
from opchain.runtime.epochs.local_epochs import LocalEpochs
from opchain.runtime.epochs.recording import canonical
from opchain.runtime.errors import CheckpointError, short_repr
from opchain.runtime.mailbox.timer_service import wall_clock_ms
from opchain.runtime.program.operator_specs import LegacySinkSpec
from opchain.runtime.records.columns import arrived_keys
from opchain.runtime.shipping.functions import ship_vertices, shipped_task
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram
    from opchain.runtime.shipping.outcome import JobOutcome
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot

    Process = Callable[[int, Sequence[Any], Sequence[int | None] | None], None]


NO_KEY: Any = object()
"""The key of operator state, which has no key."""

_CLOCKS = ("event time", "processing time")


def stop_at(task: EpochTask, key: Any, call: Callable[..., None]) -> None:
    """Makes a task process its input through `call(process, number, values, timestamps)`.

    Args:
        task: The open task.
        key: Only records of this key are passed, one by one. With NO_KEY, all batches are passed.
        call: Calls `process` with the other arguments, for example under a debugger.
    """
    chain: Any = task.chain
    process: Process = chain.process_part
    selectors = chain.program.operators[0].arrival_selectors
    key_lists = {edge.input_number: edge.key_list for edge in chain.program.inputs}

    def process_part(
        number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        if key is NO_KEY:
            call(process, number, values, timestamps)
            return
        select = selectors[number] if number < len(selectors) else None
        keys = [] if select is None else arrived_keys(values, select, key_lists.get(number))
        wanted = [place for place, found in enumerate(keys) if found == key]
        start = 0
        for place in wanted:
            _part(process, number, values, timestamps, start, place)
            _part(lambda *part: call(process, *part), number, values, timestamps, place, place + 1)
            start = place + 1
        _part(process, number, values, timestamps, start, len(values))

    chain.process_part = process_part


def _part(
    process: Process,
    number: int,
    values: Sequence[Any],
    timestamps: Sequence[int | None] | None,
    start: int,
    end: int,
) -> None:
    if start < end:
        process(number, values[start:end], None if timestamps is None else timestamps[start:end])


def muted(job: JobProgram) -> JobProgram:
    """The job without the user's SinkFunctions. Print sinks send their records to the driver."""
    vertices = tuple(
        replace(vertex, operators=tuple(map(_muted_operator, vertex.operators)))
        for vertex in job.vertices
    )
    return replace(job, vertices=vertices)


def is_muted(operator: OperatorProgram) -> bool:
    """Whether `muted` replaces the function of an operator, and so drops its state."""
    # A subclass of the spec is another kind of sink, with a writer or without a function.
    return operator.spec.__class__ is LegacySinkSpec and not isinstance(
        operator.spec.function, PrintSinkFunction
    )


def muted_environment(job: JobProgram) -> TaskEnvironment:
    """The environment of tasks in a replay. Its sink writers do nothing."""
    most = max(len(vertex.operators) for vertex in job.vertices)
    return TaskEnvironment(
        prints_on_driver=True, sink_writers=dict.fromkeys(range(most), lambda _: DiscardingWriter())
    )


def _muted_operator(operator: OperatorProgram) -> OperatorProgram:
    if not is_muted(operator):
        return operator
    return replace(operator, spec=LegacySinkSpec(DiscardingSinkFunction()))


@dataclass(frozen=True, slots=True)
class RecordedEpoch:
    """A recorded epoch: its checkpoint, and the previous checkpoint, which is None for the first epoch."""

    storage: CheckpointStorage
    metadata: CheckpointMetadata
    before: CheckpointMetadata | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the recorded epoch and its replay."""

    vertex: str
    subtask: int
    text: str

    def __str__(self) -> str:
        return f"'{self.vertex}' subtask {self.subtask}: {self.text}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a comparison, with the differences in the order of the plan.

    `keyed` has the entries of the requested key: before the epoch, recorded after it, and replayed.
    """

    differences: tuple[Difference, ...]
    tasks: int
    records: int
    entries: int
    keyed: tuple[tuple[StateEntry | None, StateEntry | None, StateEntry | None], ...] = ()


def recorded_epoch(storage: CheckpointStorage, checkpoint_id: int) -> RecordedEpoch:
    """The recorded parts of an epoch.

    Raises:
        CheckpointError: Its checkpoint or the previous one is no longer retained, or the epoch was not recorded.
    """
    known = completed_checkpoints(storage)
    if checkpoint_id not in known:
        others = (
            f"it has those of {', '.join(map(str, known))}"
            if known
            else "it has none, and a savepoint can't be run again"
        )
        raise CheckpointError(f"{storage.url} has no checkpoint of epoch {checkpoint_id}; {others}")
    metadata = read_metadata(storage, checkpoint_id)
    if metadata.input.clock_ms is None or any(task.recorded is None for task in metadata.tasks):
        raise CheckpointError(
            f"epoch {checkpoint_id} of {storage.url} was not recorded: run the job with "
            "opchain.streaming.record-epochs = true"
        )
    if checkpoint_id > 1 and checkpoint_id - 1 not in known:
        raise CheckpointError(
            f"epoch {checkpoint_id} of {storage.url} started from checkpoint {checkpoint_id - 1}, which is no "
            f"longer retained: raise execution.checkpointing.num-retained"
        )
    before = read_metadata(storage, checkpoint_id - 1) if checkpoint_id > 1 else None
    return RecordedEpoch(storage, metadata, before)


def replay(
    job: JobProgram,
    recorded: RecordedEpoch,
    tasks: Sequence[int] | None = None,
    key: Any = NO_KEY,
    prepare: Callable[[EpochTask], None] = lambda _: None,
) -> Replayed:
    """Runs an epoch again, and compares.

    Args:
        job: The program, compiled.
        recorded: The epoch.
        tasks: Which tasks are compared; None for all. All of them run.
        key: The key whose state is compared; NO_KEY for all state.
        prepare: Called with each task before it runs.

    Raises:
        CheckpointError: The program differs from the one that ran.
        Exception: The exception of a user's function.
    """
    _require_same_tasks(job, recorded.metadata)
    silent = muted(job)
    environment = muted_environment(silent)
    storage = OverlayStorage(recorded.storage)
    run = LocalEpochs(silent, storage, environment=environment, prepare=prepare)
    try:
        outcome = run.run(_epoch(recorded), _deliveries(recorded), recorded.before)
        comparison = _Comparison(silent, recorded, outcome, storage, environment, key)
        return comparison.of([task for task in job.tasks if tasks is None or task in tasks])
    finally:
        run.close()


def run_again(
    job: JobProgram,
    storage: CheckpointStorage,
    latest: CheckpointMetadata,
    deliveries: Mapping[int, Sequence[bytes]],
    prepare: Callable[[EpochTask], None] = lambda _: None,
) -> JobOutcome:
    """Runs the epoch after a checkpoint, which failed on Spark. Sinks and checkpoints write nothing.

    Its processing time is the current time, as in an epoch that Spark retries.

    Args:
        job: The program, compiled.
        storage: The checkpoints of the job.
        latest: The last complete checkpoint.
        deliveries: The input of the tasks of sources, by task.
        prepare: Called with each task before it runs.

    Raises:
        Exception: The exception of a user's function.
    """
    silent = muted(job)
    run = LocalEpochs(
        silent, OverlayStorage(storage), environment=muted_environment(silent), prepare=prepare
    )
    now_ms = epoch_time_ms(wall_clock_ms(), latest, None)
    try:
        return run.run(Epoch(latest.checkpoint_id + 1, now_ms), deliveries, latest)
    finally:
        run.close()


class _Comparison:
    """Compares the recorded and the replayed epoch, task by task."""

    def __init__(
        self,
        job: JobProgram,
        recorded: RecordedEpoch,
        outcome: JobOutcome,
        storage: CheckpointStorage,
        environment: TaskEnvironment,
        key: Any,
    ) -> None:
        self._job = job
        self._shipped = ship_vertices(job)
        self._recorded = {task.task: task for task in recorded.metadata.tasks}
        before = recorded.before
        self._before = {} if before is None else {task.task: task for task in before.tasks}
        self._snapshots = outcome.snapshots
        self._storage = storage
        self._environment = environment
        self._key = key
        self._records = self._entries = 0
        self._keyed: list[tuple[StateEntry | None, StateEntry | None, StateEntry | None]] = []

    def of(self, tasks: Sequence[int]) -> Replayed:
        found = tuple(
            Difference(self._job.vertex_of(task)[0].name, self._recorded[task].subtask, text)
            for task in tasks
            for text in self._task(task)
        )
        return Replayed(found, len(tasks), self._records, self._entries, tuple(self._keyed))

    def _task(self, task: int) -> Iterator[str]:
        recorded, snapshot = self._recorded[task], self._snapshots[task]
        if self._key is NO_KEY:
            yield from self._outputs(recorded, snapshot)
            if canonical(pickle.loads(recorded.event_time)) != canonical(
                pickle.loads(snapshot.event_time)
            ):
                yield "watermarks differ"
        yield from self._state(task, recorded, snapshot)

    def _outputs(self, recorded: TaskMetadata, snapshot: TaskSnapshot) -> Iterator[str]:
        assert recorded.recorded is not None
        assert snapshot.recorded is not None
        recorded_outputs = {output.name: output for output in recorded.recorded.outputs}
        replayed_outputs = {output.name: output for output in snapshot.recorded.outputs}
        for name in dict.fromkeys((*recorded_outputs, *replayed_outputs)):
            expected, actual = recorded_outputs.get(name), replayed_outputs.get(name)
            counts = [0 if output is None else output.records for output in (expected, actual)]
            self._records += counts[0]
            where = self._named(recorded.task, name)
            if counts[0] != counts[1]:
                yield f"sends {counts[1]} records {where}, and {counts[0]} were recorded"
            elif expected != actual:
                yield f"sends other records {where}, {counts[0]} as were recorded"

    def _named(self, task: int, output: str) -> str:
        vertex, _ = self._job.vertex_of(task)
        kind, _, number = output.partition(" ")
        if kind == "sink":
            return f"to '{vertex.operators[int(number)].name}'"
        target, _ = self._job.vertex_of(vertex.outputs[int(number)].first_target)
        return f"to vertex '{target.name}'"

    def _state(self, task: int, recorded: TaskMetadata, snapshot: TaskSnapshot) -> Iterator[str]:
        recorded_entries, replayed_entries = (
            self._contents(task, recorded.state),
            self._contents(task, snapshot.state),
        )
        before = self._before.get(task)
        start = {} if before is None else self._contents(task, before.state)
        for place in dict.fromkeys((*recorded_entries, *replayed_entries)):
            expected, actual = recorded_entries.get(place), replayed_entries.get(place)
            self._entries += 1
            if self._key is not NO_KEY:
                self._keyed.append((start.get(place), expected, actual))
            if expected is None or actual is None:
                entry = actual if expected is None else expected
                assert entry is not None
                yield f"{_described(entry)}: {_shown(actual)}, and {_shown(expected)} was recorded"
            elif canonical(expected.value) != canonical(actual.value):
                yield f"{_described(actual)}: {_shown(actual)}, and {_shown(expected)} was recorded"

    def _contents(self, task: int, state: Any) -> dict[Any, StateEntry]:
        job = shipped_task(self._job, self._shipped, task)
        silent = {
            operator.operator_id
            for operator in self._job.vertex_of(task)[0].operators
            if is_muted(operator)
        }
        found = task_contents(job, task, state, self._storage, self._environment)
        return {
            place: entry
            for place, entry in found.items()
            if entry.operator_id not in silent
            and (self._key is NO_KEY or canonical(entry.key) == canonical(self._key))
        }


def _described(entry: StateEntry) -> str:
    of_key = "" if entry.key is NO_KEY else f" of key {short_repr(entry.key)}"
    return f"{entry.name} of '{entry.operator}'{of_key}"


def _shown(entry: StateEntry | None) -> str:
    return "nothing" if entry is None else short_repr(entry.value)


def _epoch(recorded: RecordedEpoch) -> Epoch:
    metadata = recorded.metadata
    clock_ms = metadata.input.clock_ms
    assert clock_ms is not None, "the epoch was recorded"
    return Epoch(
        metadata.checkpoint_id,
        clock_ms,
        is_first=recorded.before is None,
        is_recorded=True,
    )


def _deliveries(recorded: RecordedEpoch) -> dict[int, list[bytes]]:
    return {
        task.task: pickle.loads(recorded.storage.get(task.recorded.input))
        for task in recorded.metadata.tasks
        if task.recorded is not None and task.recorded.input is not None
    }


def _require_same_tasks(job: JobProgram, metadata: CheckpointMetadata) -> None:
    found = {
        (task, vertex.vertex_id, subtask)
        for vertex in job.vertices
        for subtask, task in enumerate(vertex.tasks)
    }
    recorded = {(task.task, task.vertex_id, task.subtask) for task in metadata.tasks}
    if found != recorded:
        raise CheckpointError(
            f"epoch {metadata.checkpoint_id} of '{metadata.job_name}' was run by another program, or "
            f"with another parallelism: {len(recorded - found)} of its {len(recorded)} tasks are "
            f"not in this program, which has {len(found)}. 'opchain checkpoint diff' says which "
            f"operators differ"
        )


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One value of state, or one timer.

    Attributes:
        operator: The name of its operator.
        operator_id: Its id.
        name: The kind with the name of the state, or with service, clock and time of a timer.
        key: The key; NO_KEY for operator state.
        namespace: The window, or VOID.
        value: The contents.
    """

    operator: str
    operator_id: str
    name: str
    key: Any
    namespace: Any
    value: Any

    @property
    def place(self) -> tuple[str, str, bytes]:
        """Identifies the entry in its task."""
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
        job: The task's job, unpickled for this call, because reading the state needs new operators.
        task: The task's number.
        state: Its state files.
        storage: The storage of the files.
        environment: The environment of the tasks.
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
            if context.keyed is not None:
                context.keyed.state.restore([snapshot.keyed])
                context.keyed.timers.restore([snapshot.timers])
                entries += _keyed_entries(context.keyed.state.snapshot())
                entries += _timer_entries(context.keyed.timers.snapshot())
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
