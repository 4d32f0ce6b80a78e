"""The compiler is this table: passes in order, the word each leaves, and what then holds.

    Program -> StreamGraph -> operator ids -> chains -> JobGraph -> ExecutionPlan -> generated source

A pass is a function `Plan -> Plan` that fills one field. Options travel in the plan's settings; no
pass reads the environment or any global state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import JobGraph
    from opchain.compiler.graph.stream_graph import StreamGraph
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.job_settings import JobSettings


@dataclass(frozen=True, slots=True)
class Program:
    """What the user drew: registered transformations in the order of the calls, and the settings.

    `next_id` is the first id that translating may take (stream nodes of sinks take some).
    """

    transformations: tuple[Transformation, ...]
    settings: JobSettings
    next_id: int
    slot_group_resources: dict[str, Any] = field(default_factory=dict)
    cached_files: tuple[tuple[str, str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A program on its way to a job; each pass fills one more field."""

    program: Program
    stream_graph: StreamGraph | None = None
    operator_ids: dict[int, str] | None = None
    chained_edges: frozenset[int] | None = None
    job_graph: JobGraph | None = None
