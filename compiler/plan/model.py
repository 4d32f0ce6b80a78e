"""The model of a plan that is printed, saved as JSON, read back and compared.

All printers except Flink's JSON read only this model, so everything that can be printed can be saved. Everything here is
deterministic: the same program gives the same bytes on every machine.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from opchain.compiler.graph.transformation import UNSET
from opchain.runtime.checkpoint.metadata import SourceKind  # noqa: TC001 - its fields' types are read at run time
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

SCHEMA_VERSION = 1
"""Increased if an old reader would misread a new file. A new optional field does not increase it."""


class PlanFileError(StreamError):
    """A saved plan cannot be read.

    What to do: Save the plan again with `opchain plan FILE --format json`.
    """


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BrokenRule(_Written):
    """Why two operators are not chained: the code of the rule, the reason, and what to change."""

    code: str
    reason: str
    advice: str


_WORDS = {
    "legacy_source": "source",
    "input_format_source": "source",
    "assign_watermarks": "watermarks",
    "async_wait": "async",
    "keyed_process": "process",
    "co_process": "process",
    "keyed_co_process": "process",
    "broadcast_process": "broadcast",
    "keyed_broadcast_process": "broadcast",
    "combined_reduce": "reduce",
    "full_window": "window",
    "interval_join": "join",
    "multi_input": "inputs",
    "co_map": "map",
    "co_flat_map": "flat map",
    "legacy_sink": "sink",
    "collect_sink": "collect",
    "two_phase_sink": "sink",
    "sink_writer": "sink",
    "sink_committer": "commit",
}
"""The names of operator kinds in the DSL, if they differ from the kind."""

_TWO_INPUTS = (
    "co_map",
    "co_flat_map",
    "co_process",
    "keyed_co_process",
    "broadcast_process",
    "keyed_broadcast_process",
    "interval_join",
    "multi_input",
)
_JOINS_IN_WINDOWS = "CoGroupWindowFunction"


class PlannedOperator(_Written):
    """An operator. `node` is its number in the stream graph, which edges refer to.

    `state` describes its state in a savepoint; None if it has none. `keys` has the name of the key of each keyed input,
    and `key_types` its type.
    `id` and `user_id` are the operator ids: generated, and set by `set_uid_hash`. `max_parallelism` is -1 if the
    program sets none. `source` describes a source; None for other operators. `topics` has the topics of a KafkaSource
    or KafkaSink.
    """

    node: int
    id: str
    user_id: str | None = None
    uid: str | None = None
    name: str
    kind: str
    parallelism: int
    max_parallelism: int = UNSET
    slot_sharing_group: str = "default"
    chaining_strategy: str = "ALWAYS"
    state: str | None = None
    keys: tuple[str, ...] = ()
    key_types: tuple[str, ...] = ()
    description: str | None = None
    buffer_timeout: int | None = None
    source: SourceKind | None = None
    topics: str | None = None
    call_site: str

    @property
    def label(self) -> str:
        """The operator in messages: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"

    @property
    def word(self) -> str:
        """The name of the kind in the DSL: "sink" for a legacy_sink."""
        return _WORDS.get(self.kind, self.kind.replace("_", " "))

    @property
    def family(self) -> str:
        """The group of its symbol: "source", "sink", "join", "window", "state" or "plain"."""
        if self.source is not None or self.kind.endswith("source"):
            return "source"
        if "sink" in self.kind:
            return "sink"
        if self.kind in _TWO_INPUTS or _JOINS_IN_WINDOWS in (self.description or ""):
            return "join"
        if "window" in self.kind:
            return "window"
        return "plain" if self.state is None else "state"


class PlannedEdge(_Written):
    """An edge between two operators; inside a vertex if it `is_chained`.

    `input` is 0 for an operator with one input, else the number of the input, from 1. `key` is the name of the key,
    `tag` the id of the side output. `pattern` and `result_type` are empty inside a vertex. Edges of a vertex with the
    same `data_set` share their data. `serializer` is the declared type of the records, or `pickle` without one.
    """

    source: int
    target: int
    input: int = 0
    is_chained: bool
    ship_strategy: str
    key: str | None = None
    tag: str | None = None
    serializer: str = ""
    pattern: Literal["", "POINTWISE", "ALL_TO_ALL"] = ""
    result_type: str = ""
    data_set: int = -1
    not_chained_because: tuple[BrokenRule, ...] = ()


class PlannedVertex(_Written):
    """A chain: its operators by node number in depth-first order, and the sources that run inside the head.

    `parallelism` is -1 if the adaptive scheduler decides, `max_parallelism` -1 if it is not set.
    """

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    effective_max_parallelism: int
    slot_sharing_group: str
    operators: tuple[int, ...]
    chained_sources: tuple[int, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """All operators of the vertex: chained sources, then the chain."""
        return self.chained_sources + self.operators


class PlannedStreamEdge(_Written):
    """An edge of the program before chaining. `partitioner` may be one of Flink's internal ones."""

    source: int
    target: int
    input: int = 0
    partitioner: str
    key: str | None = None
    tag: str | None = None
    exchange_mode: str = "UNDEFINED"


class StreamPlan(_Written):
    """The stream graph: operators in the order of translation, edges by producer."""

    schema_version: Literal[1] = 1
    job_name: str
    mode: Literal["STREAMING", "BATCH"]
    is_dynamic: bool = False
    operators: tuple[PlannedOperator, ...]
    edges: tuple[PlannedStreamEdge, ...]


class JobPlan(_Written):
    """A job: vertices in topological order, operators in the order of the program, edges by producer.

    `settings` has the configuration keys with values other than the default.
    """

    schema_version: Literal[1] = 1
    job_name: str
    mode: Literal["STREAMING", "BATCH"]
    is_dynamic: bool = False
    settings: dict[str, str] = {}
    vertices: tuple[PlannedVertex, ...]
    operators: tuple[PlannedOperator, ...]
    edges: tuple[PlannedEdge, ...]

    @cached_property
    def operator_at(self) -> Mapping[int, PlannedOperator]:
        """The operators by node number."""
        return {operator.node: operator for operator in self.operators}

    @cached_property
    def call_sites(self) -> AbstractSet[str]:
        """The lines of the program that created operators."""
        return {operator.call_site for operator in self.operators}

    @cached_property
    def vertex_number_of(self) -> Mapping[int, int]:
        """The number of the vertex of each node, from 1."""
        return {
            node: number
            for number, vertex in enumerate(self.vertices, start=1)
            for node in vertex.nodes
        }

    @cached_property
    def out_edges(self) -> Mapping[int, Sequence[PlannedEdge]]:
        """The edges out of each node, in order."""
        found: dict[int, list[PlannedEdge]] = {operator.node: [] for operator in self.operators}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    @cached_property
    def in_edges(self) -> Mapping[int, Sequence[PlannedEdge]]:
        """The edges into each node, in the order of its inputs."""
        found: dict[int, list[PlannedEdge]] = {operator.node: [] for operator in self.operators}
        for edge in sorted(self.edges, key=lambda edge: edge.input):
            found[edge.target].append(edge)
        return found


def to_json(plan: JobPlan | StreamPlan) -> str:
    """The plan as JSON text that ends with a line break. The same program gives the same bytes."""
    return json.dumps(plan.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def from_json(text: str | bytes, origin: str = "the saved plan") -> JobPlan:
    """Reads a plan that `to_json` wrote.

    Args:
        text: The JSON text.
        origin: The name of the file, for messages.

    Raises:
        PlanFileError: The text is not JSON, not a plan, of another version, or inconsistent.
    """
    document = _parsed(text, origin)
    version = document.get("schema_version")
    if version is None:
        raise PlanFileError(
            f"{origin} is JSON but not a saved plan: it has no schema_version; create one with "
            f"'opchain plan FILE --format json'"
        )
    if version != SCHEMA_VERSION:
        raise PlanFileError(
            f"{origin} has schema_version {version!r} but this opchain reads version "
            f"{SCHEMA_VERSION}; create it again with 'opchain plan FILE --format json'"
        )
    if "vertices" not in document and "edges" in document:
        raise PlanFileError(
            f"{origin} is a stream graph, but a job graph is needed; create one with "
            "'opchain plan FILE --format json', without --stage"
        )
    try:
        plan = JobPlan.model_validate(document)
    except ValidationError as error:
        raise PlanFileError(f"{origin} is not a saved plan: {_first_problem(error)}") from None
    _check_references(plan, origin)
    return plan


def _parsed(text: str | bytes, origin: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PlanFileError(f"{origin} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise PlanFileError(
            f"{origin} is not a saved plan: it holds a JSON {type(document).__name__}, "
            "expected an object"
        )
    return document


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "the document"
    others = error.error_count() - 1
    more = f" (and {others} more)" if others else ""
    return f"at {where}: {problem['msg']}{more}"


def _check_references(plan: JobPlan, origin: str) -> None:
    """Checks that each node number refers to one operator, and that each operator is in one vertex."""
    nodes = [operator.node for operator in plan.operators]
    placed = [node for vertex in plan.vertices for node in vertex.nodes]
    ends = [node for edge in plan.edges for node in (edge.source, edge.target)]
    if len(set(nodes)) != len(nodes):
        raise PlanFileError(
            f"{origin} is not a saved plan: two operators have the same node number"
        )
    if sorted(placed) != sorted(nodes) or not all(vertex.operators for vertex in plan.vertices):
        raise PlanFileError(
            f"{origin} is not a saved plan: its vertices do not hold each operator once"
        )
    if stray := sorted(set(ends) - set(nodes)):
        raise PlanFileError(
            f"{origin} is not a saved plan: an edge leads to an operator that does not exist "
            f"({stray[0]})"
        )
