"""Creates the programs for executors: one VertexProgram per vertex, without generated code."""

from __future__ import annotations

import importlib
from dataclasses import replace
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.associative import is_associative
from opchain.compiler.graph.partitioner import KeyBy, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.compiler.passes.repeatable_keys import is_repeatable
from opchain.runtime.connectors.simple_sinks import PrintSinkFunction
from opchain.runtime.errors import GraphError, InternalError, one_line_name
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.functions.key_selectors import CarriedKey
from opchain.runtime.functions.sql import RowExpression
from opchain.runtime.functions.sql_windows import RowsWithWindow
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.operator_specs import ReduceSpec, TimestampsWatermarksSpec
from opchain.runtime.program.vertex_program import (
    ChainedSourceProgram,
    InputProgram,
    JobProgram,
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    Shipping,
    StageProgram,
    VertexProgram,
)
from opchain.runtime.state.disk.rocksdb import RocksDBBackend
from opchain.runtime.state.keyed.hash_map_backend import HashMapBackend
from opchain.runtime.state.keyed.keyed_backend import StateBackendSpec
from opchain.runtime.state.keys.key_hashers import hasher_of_type
from opchain.runtime.state.keys.pyflink_keys import TypedSelector, pyflink_hasher
from opchain.runtime.types.coders import coder_converter
from opchain.runtime.types.printed_form import is_row
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opchain.compiler.graph.execution_plan import Exchange, ExecutionPlan, PlacedVertex
    from opchain.compiler.graph.job_graph import ChainedOperator, JobEdge, JobGraph, JobVertex
    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode
    from opchain.runtime.types.type_information import TypeInformation

_LONGEST_FILE_NAME = 200
"""The maximum length of the file name of generated code, which is in each line of a traceback."""

SHIPPING: dict[PartitionerKind, Shipping] = {
    PartitionerKind.FORWARD: Shipping.FORWARD,
    PartitionerKind.FORWARD_FOR_UNSPECIFIED: Shipping.FORWARD,
    PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH: Shipping.FORWARD,
    PartitionerKind.REBALANCE: Shipping.REBALANCE,
    PartitionerKind.RESCALE: Shipping.RESCALE,
    PartitionerKind.SHUFFLE: Shipping.SHUFFLE,
    PartitionerKind.BROADCAST: Shipping.BROADCAST,
    PartitionerKind.GLOBAL: Shipping.GLOBAL,
    PartitionerKind.CUSTOM: Shipping.CUSTOM,
    PartitionerKind.HASH: Shipping.KEY_GROUP,
}


def assemble_programs(plan: Plan) -> Plan:
    """Sets `job_program`."""
    return replace(plan, job_program=_Assembly(plan).job_program())


def every_task_has_a_program(plan: Plan) -> None:
    """The invariant: the tasks of the stages are exactly the subtasks of the vertices."""
    program = required(plan.job_program)
    if sum(len(stage.tasks) for stage in program.stages) != len(program.tasks):
        raise InternalError("assemble_programs lost or duplicated a task")


def _with_most_results(vertices: Sequence[VertexProgram]) -> list[VertexProgram]:
    """Sets `most_results` of vertices with a source whose records only a collecting sink with a limit reads.

    Other vertices process all records, because these have other readers, or are already computed.
    """
    limits = {
        vertex.first_task: vertex.operators[0].spec.limit
        for vertex in vertices
        if isinstance(vertex.operators[0].spec, specs.CollectSinkSpec)
    }
    return [replace(vertex, most_results=_most_results(vertex, limits)) for vertex in vertices]


def _most_results(vertex: VertexProgram, limits: Mapping[int, int | None]) -> int | None:
    has_one_end = all(operator.parent == operator.index - 1 for operator in vertex.operators)
    last = vertex.operators[-1]
    if vertex.operators[0].spec.kind != "source" or not has_one_end:
        return None
    if not vertex.outputs:
        return last.spec.limit if isinstance(last.spec, specs.CollectSinkSpec) else None
    if len(vertex.outputs) > 1 or vertex.outputs[0].others:
        return None
    (output,) = vertex.outputs
    return limits.get(output.first_target) if output.operator == last.index else None


class _Assembly:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.settings = plan.program.settings
        self.execution_plan: ExecutionPlan = required(plan.execution_plan)
        self.placed = self.execution_plan.placed()
        self.timestamps = edges_with_timestamps(required(plan.stream_graph))
        self.before_watermarks = nodes_before_watermarks(required(plan.stream_graph))
        self.combining = combining_vertices(required(plan.job_graph), self.timestamps)
        self.carrying = carrying_inputs(required(plan.job_graph), self.combining)
        self.keys: dict[int, KeyProgram] = {}
        self.wirings: dict[str, str] = {}
        self.into: dict[str, list[Exchange]] = {}
        self.out_of: dict[str, list[Exchange]] = {}
        for exchange in self.execution_plan.exchanges:
            self.into.setdefault(exchange.edge.target_vertex, []).append(exchange)
            self.out_of.setdefault(exchange.edge.source_vertex, []).append(exchange)
        self.written = {
            vertex_id: self._written_together(exchanges)
            for vertex_id, exchanges in self.out_of.items()
        }
        self.timestamps |= {
            exchange.edge.edge.index
            for written in self.written.values()
            for together in written
            if any(other.edge.edge.index in self.timestamps for other in together)
            for exchange in together
        }

    def job_program(self) -> JobProgram:
        vertices: list[VertexProgram] = []
        stages: list[StageProgram] = []
        for stage in self.execution_plan.stages:
            first = len(vertices)
            vertices += [self._vertex(placed) for placed in stage.vertices]
            stages.append(
                StageProgram(
                    stage.index,
                    stage.tasks,
                    tuple(range(first, len(vertices))),
                    stage.slots,
                )
            )
        vertices = _with_most_results(vertices)
        parameters = {key: str(value) for key, value in self.settings.job_parameters.items()}
        return JobProgram(
            required(self.plan.job_graph).job_name, tuple(vertices), tuple(stages), parameters
        )

    def _written_together(self, exchanges: list[Exchange]) -> list[list[Exchange]]:
        """The exchanges of a vertex, grouped by data set, because a data set is written once.

        A reduce that combines at its senders gets pairs, so it does not share a data set. Readers that get keys with the
        records share one.
        """
        written: dict[tuple[int, int, bool], list[Exchange]] = {}
        for number, exchange in enumerate(exchanges):
            edge = exchange.edge
            is_alone = edge.target_vertex in self.combining
            source, data_set = (-1, number) if is_alone else (edge.edge.source, edge.dataset_index)
            place = source, data_set, _input_of(edge) in self.carrying
            written.setdefault(place, []).append(exchange)
        return list(written.values())

    def _state_backend(self) -> StateBackendSpec:
        """In batch mode, state exists for one key at a time. So it is in memory, as in Flink."""
        name = self.settings.state_backend
        if name == "hashmap" or required(self.plan.job_graph).is_batch:
            return HashMapBackend()
        if name == "rocksdb":
            folders = (self.settings.state_folders or "").split(",")
            return RocksDBBackend(tuple(filter(None, folders)))
        return _named_backend(name)

    def _vertex(self, placed: PlacedVertex) -> VertexProgram:
        vertex = placed.vertex
        settings = self.settings
        if placed.parallelism > placed.max_parallelism:
            head = vertex.head.node
            raise JobGraphError(
                f"{head.label} has parallelism {placed.parallelism} and max parallelism "
                f"{placed.max_parallelism}: each subtask needs a key group; call "
                f"set_max_parallelism({placed.parallelism}) or more, or set_parallelism({placed.max_parallelism}) "
                "or less"
            )
        indexes = {item.node.id: index for index, item in enumerate(vertex.operators)}
        carries = self._carries(vertex)
        operators = tuple(
            self._operator(index, item, indexes, carries)
            for index, item in enumerate(vertex.operators)
        )
        if vertex.id in self.combining:
            operators = (self._of_pairs(operators[0]), *operators[1:])
        operators = (self._of_carried_keys(operators[0], vertex.id), *operators[1:])
        input_numbers = {edge.source: edge.type_number - 1 for edge in vertex.head.inputs}
        sources = tuple(
            ChainedSourceProgram(
                self._operator(len(operators) + position, item, {}, carries),
                input_number=input_numbers[item.node.id],
                channel=-1 - position,
            )
            for position, item in enumerate(vertex.chained_sources)
        )
        return VertexProgram(
            vertex_id=vertex.id,
            name=vertex.name,
            parallelism=placed.parallelism,
            max_parallelism=placed.max_parallelism,
            first_task=placed.first_task,
            operators=operators,
            inputs=tuple(self._input(item) for item in self.into.get(vertex.id, [])),
            outputs=tuple(
                self._output(together, indexes) for together in self.written.get(vertex.id, [])
            ),
            chained_sources=sources,
            file_name=f"<generated: {one_line_name(vertex.name, _LONGEST_FILE_NAME)}>",
            is_batch=required(self.plan.job_graph).is_batch,
            object_reuse=settings.object_reuse,
            batch_size=settings.batch_size,
            auto_watermark_interval_ms=settings.auto_watermark_interval_ms,
            latency_interval_ms=max(0, settings.latency_interval_ms),
            state_backend=self._state_backend(),
            wiring=self._wiring(placed),
        )

    def _wiring(self, placed: PlacedVertex) -> str:
        """See VertexProgram. The wirings of all producers are known, because vertices are in the order of execution."""
        channels = [
            (
                exchange.edge.edge.type_number,
                exchange.edge.partitioner.kind.is_pointwise,
                required(self.plan.operator_ids)[exchange.edge.edge.source],
                self.wirings[exchange.edge.source_vertex],
            )
            for exchange in self.into.get(placed.vertex.id, [])
        ]
        described = repr((placed.vertex.id, placed.parallelism, channels))
        found = self.wirings[placed.vertex.id] = sha256(described.encode()).hexdigest()[:32]
        return found

    def _carries(self, vertex: JobVertex) -> set[int]:
        """The nodes of a vertex whose input records have timestamps."""
        graph = required(self.plan.stream_graph)
        members = [item.node for item in (*vertex.operators, *vertex.chained_sources)]
        return {
            node.id
            for node in members
            if node.spec.brings_timestamps
            or any(edge.index in self.timestamps for edge in graph.in_edges(node.id))
        }

    def _operator(
        self, index: int, item: ChainedOperator, indexes: dict[int, int], carries: set[int]
    ) -> OperatorProgram:
        node = item.node
        keys = tuple(
            None if key is None else self._key(key, str(node.call_site)) for key in node.key_bys
        )
        if isinstance(node.spec, specs.MultiInputSpec):
            keys = keys or (None,) * len(node.spec.functions)
        edge = item.inputs[0] if item.inputs and item.inputs[0].source in indexes else None
        return OperatorProgram(
            index=index,
            name=node.name,
            operator_id=item.operator_id,
            call_site=str(node.call_site),
            spec=self._spec(node),
            parent=-1 if edge is None else indexes[edge.source],
            tag=None if edge is None or edge.tag is None else edge.tag.tag_id,
            keys=keys,
            uid=node.uid,
            timestamps=node.id in carries,
            uid_hash=None if node.uid_hash is None else node.uid_hash.lower(),
            record_type=self._record_type(node),
            side_types=self._side_types(node),
        )

    def _spec(self, node: StreamNode) -> specs.OperatorSpec:
        """The spec of the node. A source does not split files if an operator downstream assigns event time."""
        spec = node.spec
        if node.id not in self.before_watermarks:
            return spec
        if isinstance(spec, specs.SourceSpec):
            return replace(spec, source=spec.source.uncut())
        if isinstance(spec, specs.InputFormatSourceSpec):
            return replace(spec, function=spec.function.uncut())
        return spec

    def _record_type(self, node: StreamNode) -> TypeInformation[Any] | None:
        """The declared output type of an operator, if its records must be converted.

        A source has already converted its records, and batches have columns. Values of SQL have the types of their
        columns, so a TIMESTAMP(6) keeps its microseconds.
        """
        if not node.key_bys or isinstance(node.spec, specs.MapBatchesSpec):
            return None
        if isinstance(getattr(node.spec, "function", None), (RowExpression, RowsWithWindow)):
            return None
        if coder_converter(node.output_type) is None:
            return None
        graph = required(self.plan.stream_graph)
        return node.output_type if leaves_python_chain(graph, node) else None

    def _side_types(self, node: StreamNode) -> tuple[tuple[str, TypeInformation[Any]], ...]:
        """The declared types of the side outputs that are read, by tag id."""
        edges = required(self.plan.stream_graph).out_edges(node.id)
        tags = {edge.tag.tag_id: edge.tag.type_info for edge in edges if edge.tag is not None}
        return tuple((tag, kind) for tag, kind in tags.items() if coder_converter(kind))

    def _of_pairs(self, reduce: OperatorProgram) -> OperatorProgram:
        """A reduce that receives (key, value) pairs."""
        assert isinstance(reduce.spec, specs.ReduceSpec)
        (key,) = reduce.keys
        assert key is not None
        return replace(
            reduce,
            spec=specs.CombinedReduceSpec(reduce.spec.function),
            keys=(replace(key, selector=itemgetter(0)),),
        )

    def _of_carried_keys(self, head: OperatorProgram, vertex_id: str) -> OperatorProgram:
        """A head that receives (key, record) pairs from some inputs, or from none."""
        keys = tuple(
            replace(key, selector=CarriedKey(), is_carried=True)
            if key is not None and (vertex_id, number) in self.carrying
            else key
            for number, key in enumerate(head.keys)
        )
        return replace(head, keys=keys)

    def _key(self, key_by: KeyBy, call_site: str) -> KeyProgram:
        """One program per `key_by` call, so that equal keys are still equal after pickling."""
        known = self.keys.get(id(key_by))
        if known is None:
            selector = getattr(key_by.selector, "get_key", key_by.selector)
            if isinstance(key_by.key_type, RowTypeInfo) or key_by.key_type == Types.BOOLEAN():
                selector = TypedSelector(selector, key_by.key_type)
            hasher = pyflink_hasher(key_by.key_type, hasher_of_type(key_by.key_type))
            known = self.keys[id(key_by)] = KeyProgram(
                selector, key_by.name, call_site, hasher, key_by.type_text
            )
        return known

    def _input(self, exchange: Exchange) -> InputProgram:
        edge = exchange.edge
        return InputProgram(
            input_number=max(0, edge.edge.type_number - 1),
            channel_base=exchange.channel_base,
            producer_parallelism=self.placed[edge.source_vertex].parallelism,
            is_pointwise=edge.partitioner.kind.is_pointwise,
            carries_timestamps=edge.edge.index in self.timestamps,
            label=f"{self._producer(exchange)} -> {exchange.label}",
        )

    def _producer(self, exchange: Exchange) -> str:
        return required(self.plan.stream_graph).node(exchange.edge.edge.source).name

    def _output(self, together: list[Exchange], indexes: dict[int, int]) -> OutputProgram:
        exchange = together[0]
        edge = exchange.edge
        target = self.placed[edge.target_vertex]
        partitioner = edge.partitioner
        shipping = SHIPPING[partitioner.kind]
        key = None
        if partitioner.key_by is not None and shipping is not Shipping.FORWARD:
            key = self._key(partitioner.key_by, str(target.vertex.head.node.call_site))
        return OutputProgram(
            operator=indexes[edge.edge.source],
            tag=None if edge.edge.tag is None else edge.edge.tag.tag_id,
            shipping=shipping,
            first_target=target.first_task,
            target_parallelism=target.parallelism,
            target_max_parallelism=target.max_parallelism,
            channel_base=exchange.channel_base,
            label=" and ".join(reader.label for reader in together),
            key=key,
            custom_partitioner=partitioner.custom,
            combine=self._function_of(target) if target.vertex.id in self.combining else None,
            carries_key=_input_of(edge) in self.carrying,
            carries_timestamps=edge.edge.index in self.timestamps,
            buffer_timeout_ms=self._buffer_timeout(exchange),
            others=tuple(
                (self.placed[reader.edge.target_vertex].first_task, reader.channel_base)
                for reader in together[1:]
            ),
        )

    def _function_of(self, reducing: PlacedVertex) -> Any:
        spec = reducing.vertex.head.node.spec
        assert isinstance(spec, specs.ReduceSpec)
        return spec.function

    def _buffer_timeout(self, exchange: Exchange) -> int:
        source = required(self.plan.stream_graph).node(exchange.edge.edge.source)
        timeout = source.buffer_timeout
        return self.settings.buffer_timeout_ms if timeout is None else timeout


def _named_backend(name: str) -> StateBackendSpec:
    """The user's state backend class that `state.backend.type` names."""
    module, _, class_name = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise GraphError(
            f"state.backend.type is {name!r}, which cannot be imported ({error}); set it to 'hashmap', 'rocksdb' "
            "or the 'module.Class' of a StateBackendSpec"
        ) from error
    if not (isinstance(found, type) and issubclass(found, StateBackendSpec)):
        raise GraphError(
            f"state.backend.type is {name!r}, which is {found!r}; it must be a class that extends StateBackendSpec"
        )
    return found()


def edges_with_timestamps(graph: StreamGraph) -> frozenset[int]:
    """The indexes of the edges whose records need timestamps. Most jobs have few such edges, many have none.

    Records carry a timestamp if an upstream operator assigns it, and a downstream operator reads it. (Flink always
    sends it.) The algorithm requires that producers come before consumers in the list of nodes.
    """
    nodes = list(graph.nodes())
    made: dict[int, bool] = {}
    for node in nodes:
        made[node.id] = _makes_timestamps(graph, node) or any(
            made[edge.source] for edge in graph.in_edges(node.id)
        )
    read: dict[int, bool] = {}
    carrying = []
    for node in reversed(nodes):
        out_edges = graph.out_edges(node.id)
        read[node.id] = _reads_timestamps(graph, node) or (
            not _makes_timestamps(graph, node) and any(read[edge.target] for edge in out_edges)
        )
        carrying += [edge.index for edge in out_edges if made[node.id] and read[edge.target]]
    return frozenset(carrying)


def nodes_before_watermarks(graph: StreamGraph) -> frozenset[int]:
    """The nodes upstream of an operator that generates watermarks. None in batch mode."""
    if graph.is_batch:
        return frozenset()
    before: set[int] = set()
    for node in reversed(list(graph.nodes())):
        if node.id in before or _makes_watermarks(node):
            before.update(edge.source for edge in graph.in_edges(node.id))
    return frozenset(before)


def _makes_watermarks(node: StreamNode) -> bool:
    spec = node.spec
    return isinstance(spec, TimestampsWatermarksSpec) and spec.strategy.makes_watermarks


def _reads_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode, a keyed operator also reads timestamps, because its input is sorted by them."""
    return (graph.is_batch and node.is_keyed) or node.spec.reads_timestamps


def _makes_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode, a reduce also assigns timestamps: its results have the time at the end of their key."""
    return node.spec.makes_timestamps or (graph.is_batch and isinstance(node.spec, ReduceSpec))


_FUNCTIONS = (specs.MapSpec, specs.FlatMapSpec, specs.FilterSpec, specs.ProcessSpec)
"""The operators that PyFlink adds to a chain of Python functions, if they have no key."""

_HEADS = (
    *_FUNCTIONS,
    specs.ReduceSpec,
    specs.KeyedProcessSpec,
    specs.WindowSpec,
    specs.CoMapSpec,
    specs.CoFlatMapSpec,
    specs.CoProcessSpec,
    specs.KeyedCoProcessSpec,
)
"""The operators after which PyFlink continues a chain of Python functions."""


def _prints_rows(spec: specs.OperatorSpec) -> bool:
    """Whether PyFlink formats the printed records in a Python function, which joins the chain."""
    return (
        isinstance(spec, specs.LegacySinkSpec)
        and isinstance(spec.function, PrintSinkFunction)
        and is_row(spec.function.record_type)
    )


def leaves_python_chain(graph: StreamGraph, node: StreamNode) -> bool:
    """Whether the records of an operator leave PyFlink's chain of Python functions, and so pass through Java.

    Within such a chain, a function gets the object that the previous function returned. At its end, PyFlink encodes the
    object by its declared type. PyFlink chains a function without a key to its input under four conditions: both have
    the same parallelism, maximum parallelism and slot sharing group; the edge is a forward edge; neither forbids
    chaining; and nothing else reads the input. Flink: PythonOperatorChainingOptimizer.

    These chains only decide how records are converted. Vertices follow Flink's own rules.
    """
    edges = list(graph.out_edges(node.id))
    if len(edges) != 1 or not isinstance(node.spec, _HEADS):
        return True
    (edge,) = edges
    reader = graph.node(edge.target)
    return not (
        (isinstance(reader.spec, _FUNCTIONS) or _prints_rows(reader.spec))
        and not reader.is_keyed
        and len(list(graph.in_edges(reader.id))) == 1
        and edge.tag is None
        and edge.partitioner.kind.is_forward
        and node.parallelism == reader.parallelism
        and node.max_parallelism == reader.max_parallelism
        and node.slot_sharing_group == reader.slot_sharing_group
        and node.chaining_strategy is not ChainingStrategy.NEVER
        and reader.chaining_strategy is ChainingStrategy.ALWAYS
    )


def combining_vertices(job_graph: JobGraph, with_timestamps: Collection[int]) -> frozenset[str]:
    """The ids of the vertices whose head is a reduce, and whose senders may combine the records of a key.

    In batch mode only the last result of a key is emitted. So each sender may send one record per key, if the function
    is associative. There are three exceptions. The function has `open` or `close`, which senders do not call. The
    records arrive unsorted by key (a forward edge that replaces a hash). Or the records have timestamps, and must be
    combined in their order across all senders. Flink only combines in its table runtime.

    Args:
        job_graph: The graph.
        with_timestamps: The indexes of the edges whose records carry timestamps.
    """
    if not job_graph.is_batch:
        return frozenset()
    return frozenset(
        vertex.id
        for vertex in job_graph.vertices
        if isinstance(vertex.head.node.spec, ReduceSpec)
        and not has_lifecycle(vertex.head.node.spec.function)
        and is_associative(vertex.head.node.spec.function)
        and all(
            edge.partitioner.kind is PartitionerKind.HASH and edge.edge.index not in with_timestamps
            for edge in job_graph.in_edges(vertex.id)
        )
    )


def _input_of(edge: JobEdge) -> tuple[str, int]:
    """The vertex that an edge leads to, and the number of its input, from 0."""
    return edge.target_vertex, max(0, edge.edge.type_number - 1)


def carrying_inputs(job_graph: JobGraph, combining: Collection[str]) -> frozenset[tuple[str, int]]:
    """The keyed inputs whose records are sent with their keys: their vertices, and their numbers.

    These are the inputs whose key selector may give another key, or change something, when it is called again.

    Args:
        job_graph: The graph.
        combining: The vertices whose senders combine records, which get keys anyway.
    """
    found = set()
    for vertex in job_graph.vertices:
        for number, key_by in enumerate(vertex.head.node.key_bys):
            edges = [
                edge.partitioner
                for edge in job_graph.in_edges(vertex.id)
                if _input_of(edge) == (vertex.id, number)
            ]
            if (
                key_by is not None
                and vertex.id not in combining
                and edges
                and all(each.kind is PartitionerKind.HASH for each in edges)
                and all(each.key_by is key_by for each in edges)
                and not is_repeatable(key_by.selector)
            ):
                found.add((vertex.id, number))
    return frozenset(found)
