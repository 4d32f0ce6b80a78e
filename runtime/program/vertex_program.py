"""The parts of a job for executors: the frozen programs of vertices, the receivers of their buffers, and slot resources.

The compiler makes these from the JobGraph and the ExecutionPlan. They are pickled once, broadcast, and have no state.
Tasks are numbered over the whole job, stage by stage: `first_task + subtask`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError
from opchain.runtime.state.keyed.hash_map_backend import HashMapBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.program.operator_specs import OperatorSpec
    from opchain.runtime.state.keyed.keyed_backend import StateBackendSpec
    from opchain.runtime.types.type_information import TypeInformation

DRIVER = -1
"""The target of a buffer that is meant for the driver: acknowledgements and collected results."""

ARROW_SINK = -2
"""The target of a batch that Spark takes from an Arrow sink. Its order is the operator's index."""

NO_OPERATOR = -1
FIRST_OUTPUT = -2


class Shipping(Enum):
    """How an output chooses channels; the runtime's half of the compiler's partitioner kinds."""

    FORWARD = "forward"
    KEY_GROUP = "key group"
    REBALANCE = "rebalance"
    RESCALE = "rescale"
    SHUFFLE = "shuffle"
    BROADCAST = "broadcast"
    GLOBAL = "global"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class KeyProgram:
    """A key selector as executors use it: `selector(value)` returns the key.

    `hasher` returns its Java hash code if a key type was declared. Otherwise it is None, and the class of the key
    decides. `key_type` is the type as text. If `is_carried`, records arrive as (key, record) pairs, and `selector` is a
    CarriedKey.
    """

    selector: Any
    name: str
    call_site: str
    hasher: Any = None
    key_type: str = ""
    is_carried: bool = False

    @property
    def label(self) -> str:
        """The key selector in messages: `'key_by' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"


@dataclass(frozen=True, slots=True)
class OperatorProgram:
    """One operator of a chain.

    `parent` is the index of the operator that feeds it, -1 for the head. `tag` is the id of the side output that it
    reads, None for the main output. `keys` has an entry per input. `timestamps` says whether this operator or one
    downstream reads the event times of records. `uid_hash` is an operator id, as `set_uid_hash` gave it, in lower
    case; a restore looks for state under this id first. `record_type` is the declared type of the results, if records
    are converted to it. `side_types` has the types of side outputs that have a reader, by tag id.
    """

    index: int
    name: str
    operator_id: str
    call_site: str
    spec: OperatorSpec
    parent: int
    tag: str | None = None
    keys: tuple[KeyProgram | None, ...] = ()
    uid: str | None = None
    timestamps: bool = True
    uid_hash: str | None = None
    record_type: TypeInformation[Any] | None = None
    side_types: tuple[tuple[str, TypeInformation[Any]], ...] = ()

    @property
    def label(self) -> str:
        """The operator in messages: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"

    @property
    def arrival_selectors(self) -> tuple[Callable[[Any], Any] | None, ...]:
        """What returns the key of a record as it arrives, for each input; None for an input without a key."""
        return tuple(
            None if key is None else itemgetter(0) if key.is_carried else key.selector
            for key in self.keys
        )

    @property
    def key_types(self) -> tuple[str, ...]:
        """The type of the key of each keyed input, as text."""
        return tuple(key.key_type for key in self.keys if key is not None)

    def key_selector(self, number: int = 0) -> Callable[[Any], Any]:
        """The key selector of an input that has a key."""
        key = self.keys[number]
        assert key is not None
        selector: Callable[[Any], Any] = key.selector
        return selector


@dataclass(frozen=True, slots=True)
class ChainedSourceProgram:
    """A source that runs inside a task and feeds input `input_number` of its head, from 0.

    `channel` is negative, so it differs from the channels of exchanges. The operator's index follows those of the
    chain.
    """

    operator: OperatorProgram
    input_number: int
    channel: int


@dataclass(frozen=True, slots=True)
class OutputProgram:
    """One data set that leaves the vertex from operator `operator`, for the consumer edges that share it.

    `first_target` is the task number of the consumer's subtask 0 and `channel_base` the number, at
    each consumer, of the channel from this vertex's subtask 0: producer subtask s writes channel
    `channel_base + s` of task `first_target + t`. With `combine`, a reduce function, records of one
    key are folded into one before they are sent, as a (key, value) pair (batch mode only). With `carries_key`, each
    record is sent as a (key, record) pair. `others` are the (first_target, channel_base) of further consumers with as
    many subtasks, which read the same buffers.
    """

    operator: int
    tag: str | None
    shipping: Shipping
    first_target: int
    target_parallelism: int
    target_max_parallelism: int
    channel_base: int
    label: str
    key: KeyProgram | None = None
    custom_partitioner: Any = None
    combine: Any = None
    carries_key: bool = False
    carries_timestamps: bool = True
    buffer_timeout_ms: int = -1
    others: tuple[tuple[int, int], ...] = ()

    @property
    def readers(self) -> tuple[tuple[int, int], ...]:
        """The (first_target, channel_base) of all consumers."""
        return ((self.first_target, self.channel_base), *self.others)


@dataclass(frozen=True, slots=True)
class InputProgram:
    """One in-edge of a vertex: `parallelism` channels from `channel_base` on, one per producer subtask.

    `input_number` is the input of the head that the records are for, from 0 (edges of a union share
    one). With `is_pointwise`, only some producers reach a given subtask: `channels_of` tells which.
    Where records arrive as `Columns`, the list number `key_list` has their keys.
    """

    input_number: int
    channel_base: int
    producer_parallelism: int
    is_pointwise: bool
    carries_timestamps: bool
    label: str
    key_list: int | None = None

    def channels_of(self, subtask: int, parallelism: int) -> range:
        """The channels that reach `subtask` of `parallelism` consumers."""
        if not self.is_pointwise:
            return range(self.channel_base, self.channel_base + self.producer_parallelism)
        first, last = pointwise_producers(subtask, parallelism, self.producer_parallelism)
        return range(self.channel_base + first, self.channel_base + last)


def pointwise_producers(subtask: int, parallelism: int, producers: int) -> tuple[int, int]:
    """The producers [first, last) that a consumer subtask reads over a pointwise edge.

    Flink: `VertexInputInfoComputationUtils.computeVertexInputInfoForPointwise`. With more producers
    than consumers each consumer reads a contiguous run, else each producer feeds a run of consumers.
    """
    if producers >= parallelism:
        return subtask * producers // parallelism, (subtask + 1) * producers // parallelism
    first = subtask * producers // parallelism
    return first, first + 1


def pointwise_consumers(subtask: int, parallelism: int, consumers: int) -> tuple[int, int]:
    """The consumers [first, last) that a producer subtask of `parallelism` writes to.

    The inverse of `pointwise_producers`.
    """
    if parallelism >= consumers:
        # The consumer c reads [c*p//n, (c+1)*p//n): the one whose run holds this subtask.
        first = ((subtask + 1) * consumers - 1) // parallelism
        return first, first + 1
    return (
        -(-subtask * consumers // parallelism),
        -(-(subtask + 1) * consumers // parallelism),
    )


@dataclass(frozen=True, slots=True)
class VertexProgram:
    """Everything a subtask of one vertex needs.

    `operators` come depth first from the head. `source` is the generated module's text; without it
    the chain runs interpreted. `names` says what each free name of the text stands for, as a tuple
    that `task.generated_code` resolves: ("call", 2) is the function of operator 2. `lines` has the
    operator that each line of the text runs (NO_OPERATOR for none, FIRST_OUTPUT - n where it readies a
    record for output n), `file_name` shows in tracebacks. Sources send latency markers every
    `latency_interval_ms`, 0 for never. The source of a bounded task need not read on after `most_results` records have
    left the task; None reads all. `remarks` say, by operator, what code generation did and why it
    could not do more. `wiring` is a digest of the vertex, its parallelism, and all vertices upstream of it: if it is
    the same in two programs, the channels of a task mean the same.
    """

    vertex_id: str
    name: str
    parallelism: int
    max_parallelism: int
    first_task: int
    operators: tuple[OperatorProgram, ...]
    inputs: tuple[InputProgram, ...] = ()
    outputs: tuple[OutputProgram, ...] = ()
    chained_sources: tuple[ChainedSourceProgram, ...] = ()
    source: str | None = None
    file_name: str = "<generated>"
    names: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    is_batch: bool = False
    object_reuse: bool = False
    batch_size: int = 4096
    auto_watermark_interval_ms: int = 200
    latency_interval_ms: int = 0
    most_results: int | None = None
    state_backend: StateBackendSpec = field(default_factory=HashMapBackend)
    remarks: tuple[tuple[int, tuple[str, ...]], ...] = ()
    wiring: str = ""

    @property
    def tasks(self) -> range:
        """The task numbers of its subtasks, in their order."""
        return range(self.first_task, self.first_task + self.parallelism)

    @property
    def all_operators(self) -> tuple[OperatorProgram, ...]:
        """The operators of the chain and the sources that run inside its head, by index."""
        return self.operators + tuple(source.operator for source in self.chained_sources)


@dataclass(frozen=True, slots=True)
class StageProgram:
    """One stage, whose tasks are numbered vertex after vertex.

    `slots` has the tasks of each slot. Partition p of the stage's RDD is slot p, whose tasks one Spark task runs
    one after another.
    """

    index: int
    tasks: range
    vertices: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class JobProgram:
    """A compiled job as it is sent to executors. Stages and vertices are in the order in which they run."""

    job_name: str
    vertices: tuple[VertexProgram, ...]
    stages: tuple[StageProgram, ...]
    job_parameters: dict[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> range:
        """The numbers of all tasks."""
        return range(sum(vertex.parallelism for vertex in self.vertices))

    @property
    def operators(self) -> list[OperatorProgram]:
        """The operators of all vertices, with the sources that run inside their heads."""
        return [operator for vertex in self.vertices for operator in vertex.all_operators]

    @property
    def endless_sources(self) -> list[OperatorProgram]:
        """The sources that never end by themselves."""
        return [
            operator
            for operator in self.operators
            if operator.spec.kind == "source" and not operator.spec.is_bounded  # type: ignore[attr-defined]
        ]

    @property
    def running_sources(self) -> list[OperatorProgram]:
        """The SourceFunctions that may be unbounded. In batch mode all of them end."""
        return [
            operator
            for vertex in self.vertices
            for operator in vertex.operators
            if operator.spec.kind == "legacy_source"
            and not vertex.is_batch
            and not operator.spec.is_bounded  # type: ignore[attr-defined]
            and getattr(operator.spec.function, "is_bounded", None) is not True  # type: ignore[attr-defined]
        ]

    def vertex_number(self, task: int) -> int:
        """The number, among the vertices, of a task's vertex."""
        for number, vertex in enumerate(self.vertices):
            if task in vertex.tasks:
                return number
        raise InternalError(f"job '{self.job_name}' has no task {task}")

    def vertex_of(self, task: int) -> tuple[VertexProgram, int]:
        """The vertex and subtask of a task number."""
        vertex = self.vertices[self.vertex_number(task)]
        return vertex, task - vertex.first_task


@dataclass(frozen=True, slots=True)
class SlotResources:
    """The resources of one slot.

    `memory_mebi_bytes` is the sum of Flink's task heap, off-heap and managed memory: here the code and the
    state of a task share its Python process. `external` has other resources by name, such as `gpu`.
    """

    group: str
    cpu_cores: float
    memory_mebi_bytes: int
    external: tuple[tuple[str, float], ...] = ()


def largest(slots: Iterable[SlotResources]) -> SlotResources | None:
    """The smallest resources that suffice for each of the slots; None without slots."""
    found = list(slots)
    if not found:
        return None
    external: dict[str, float] = {}
    for slot in found:
        for name, amount in slot.external:
            external[name] = max(amount, external.get(name, 0.0))
    return SlotResources(
        ", ".join(dict.fromkeys(slot.group for slot in found)),
        max(slot.cpu_cores for slot in found),
        max(slot.memory_mebi_bytes for slot in found),
        tuple(sorted(external.items())),
    )
