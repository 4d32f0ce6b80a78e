"""Program -> StreamGraph: transformations become nodes; unions, partitionings and side outputs become edges.

Flink: `StreamGraphGenerator` with its `TransformationTranslator`s. The order of translation decides the ids of nodes
and the order of edges, and so operator ids. It is Flink's order: registered transformations in the order of the calls,
each after its inputs. Flink uses recursion. This pass creates a list first, so a chain of 100,000 operators does not
overflow the stack.

The configuration may set attributes of single operators: `counts.parallelism = 8`. They are applied to the nodes.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx

from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.plan import Plan, Program, StreamGraphError, required
from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from opchain.compiler.graph.transformation import (
    UNSET,
    CacheTransformation,
    ChainingStrategy,
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    Transformation,
    UnionTransformation,
)
from opchain.runtime.connectors.collection import CacheSink
from opchain.runtime.errors import InternalError
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.runtime.types.output_tag import OutputTag


DEFAULT_SLOT_SHARING_GROUP = "default"
_DEFAULT_JOB_NAMES = {True: "Flink Batch Job", False: "Flink Streaming Job"}

_BROADCAST_STATE = (specs.BroadcastProcessSpec, specs.KeyedBroadcastProcessSpec)


_PROGRAM = "program"
"""A virtual node that reads all registered transformations, so one search finds them in the order of the calls."""


class _Upstream(NamedTuple):
    """An input of a consumer: a node, with the partitioner and side output between them (Flink's virtual nodes)."""

    node: StreamNode
    partitioner: Partitioner | None = None
    exchange_mode: ExchangeMode | None = None
    tag: OutputTag | None = None


def generate_stream_graph(plan: Plan) -> Plan:
    """Sets `stream_graph`.

    Raises:
        StreamGraphError: The program is empty or has a cycle, BATCH has an unbounded source, a forward edge changes the
            parallelism, or an operator has no uid although all need one.
    """
    program = plan.program
    order = _translation_order(program.transformations)
    is_batch = _runs_as_batch(program)
    scheduler = program.settings.scheduler or "AdaptiveBatch"
    graph = StreamGraph(
        job_name=program.settings.job_name or _DEFAULT_JOB_NAMES[is_batch],
        is_batch=is_batch,
        is_dynamic=is_batch and scheduler == "AdaptiveBatch",
        slot_group_resources=dict(program.slot_group_resources),
    )
    settings_of = operator_settings(order, program.settings.operators)
    translator = _Translator(program, graph)
    for transformation in order:
        translator.translate(transformation, settings_of.get(transformation, {}))
    return replace(plan, stream_graph=graph)


def inputs_come_first(plan: Plan) -> None:
    """The invariant: every edge leads from an earlier node to a later one, so there are no cycles."""
    graph = required(plan.stream_graph)
    position = {node.id: place for place, node in enumerate(graph.nodes())}
    for edge in graph.edges():
        if position[edge.source] >= position[edge.target]:
            raise InternalError(f"stream edge {edge.source} -> {edge.target} runs backwards")


def _translation_order(registered: Sequence[Transformation]) -> list[Transformation]:
    """All reachable transformations in the order of the calls, each after its inputs."""
    if not registered:
        raise StreamGraphError(
            "the program has no operator or sink: nothing would run; a source alone is not enough, "
            "add a sink with sink_to(), add_sink() or print() before execute()"
        )
    upstream: nx.DiGraph[Transformation | str] = nx.DiGraph()
    upstream.add_edges_from((_PROGRAM, transformation) for transformation in registered)
    waiting = list(registered)
    while waiting:
        transformation = waiting.pop()
        waiting += [source for source in transformation.inputs if source not in upstream]
        upstream.add_edges_from((transformation, source) for source in transformation.inputs)
    if not nx.is_directed_acyclic_graph(upstream):
        (reader, writer, *_), *_ = nx.find_cycle(upstream)
        raise StreamGraphError(
            f"{reader.label} reads its own output through {writer.label}; a program must not have cycles"
        )
    order: Iterator[Any] = nx.dfs_postorder_nodes(upstream, _PROGRAM)
    return [transformation for transformation in order if transformation != _PROGRAM]


def _runs_as_batch(program: Program) -> bool:
    mode = program.settings.runtime_mode
    unbounded = next(filter(_is_unbounded, _visible(program.transformations)), None)
    if mode == "BATCH" and unbounded is not None:
        raise StreamGraphError(
            f"the runtime mode is BATCH, but source {unbounded.label} is "
            "unbounded; use a bounded source, or runtime mode STREAMING or AUTOMATIC"
        )
    return mode != "STREAMING" and unbounded is None


def _visible(registered: Sequence[Transformation]) -> Iterator[Transformation]:
    """The sources that Flink checks for unbounded ones.

    These are all sources, with one gap: for an operator with broadcast state, Flink checks only its direct inputs
    (`AbstractBroadcastStateTransformation`). So it does not find a source that only feeds a broadcast side, and the job
    may still be a batch job, as here.
    """
    seen: set[Transformation] = set()
    stack = list(reversed(registered))
    while stack:
        transformation = stack.pop()
        if transformation in seen:
            continue
        seen.add(transformation)
        yield transformation
        if isinstance(transformation, OperatorTransformation) and isinstance(
            transformation.spec, _BROADCAST_STATE
        ):
            yield from transformation.inputs
        else:
            stack += transformation.inputs


def _is_unbounded(transformation: Transformation) -> bool:
    return (
        isinstance(transformation, OperatorTransformation)
        and isinstance(transformation.spec, specs.SourceSpec | specs.LegacySourceSpec)
        and not transformation.spec.is_bounded
    )


class _Translator:
    """Translates transformations one by one, each after its inputs."""

    def __init__(self, program: Program, graph: StreamGraph) -> None:
        self._settings = program.settings
        self._graph = graph
        self._next_id = program.next_id
        self._upstreams: dict[Transformation, list[_Upstream]] = {}

    def translate(self, original: Transformation, changed: Mapping[str, str]) -> None:
        """Adds the nodes of a transformation, and stores what its consumers read."""
        transformation = with_settings(original, changed)
        if isinstance(transformation, OperatorTransformation):
            upstreams = [_Upstream(self._add_operator(transformation))]
        elif isinstance(transformation, SinkTransformation):
            self._add_sink(transformation)
            upstreams = []
        elif isinstance(transformation, UnionTransformation):
            upstreams = [
                upstream for stream in transformation.inputs for upstream in self._upstreams[stream]
            ]
        elif isinstance(transformation, PartitionTransformation):
            upstreams = self._partitioned(transformation)
        elif isinstance(transformation, SideOutputTransformation):
            upstreams = self._side_outputs(transformation)
        elif isinstance(transformation, CacheTransformation):
            upstreams = self._cached(transformation)
        else:
            raise InternalError(f"no translation for {transformation!r}")
        self._upstreams[original] = upstreams

    def _take_id(self) -> int:
        taken = self._next_id
        self._next_id += 1
        return taken

    def _partitioned(self, transformation: PartitionTransformation) -> list[_Upstream]:
        mode = transformation.exchange_mode
        if mode is ExchangeMode.BATCH and not self._graph.is_batch:
            mode = ExchangeMode.UNDEFINED
        upstreams = []
        for upstream in self._upstreams[transformation.inputs[0]]:
            self._take_id()  # Flink creates a virtual node here, which takes an id
            # The partitioner closest to the consumer wins, and the exchange mode closest to the producer.
            nearest_producer = mode if upstream.exchange_mode is None else upstream.exchange_mode
            upstreams.append(
                upstream._replace(
                    partitioner=transformation.partitioner, exchange_mode=nearest_producer
                )
            )
        return upstreams

    def _side_outputs(self, transformation: SideOutputTransformation) -> list[_Upstream]:
        upstreams = []
        for upstream in self._upstreams[transformation.inputs[0]]:
            self._take_id()
            upstreams.append(upstream._replace(tag=transformation.tag))
        return upstreams

    def _cached(self, transformation: CacheTransformation) -> list[_Upstream]:
        """A source if the records are cached, else an additional operator that writes them.

        Flink: `CacheTransformationTranslator`.
        """
        upstreams = self._upstreams.get(transformation.stream)
        if upstreams is None:
            read = specs.SourceSpec(transformation.records.source())
            return [_Upstream(self._add_cache_node(transformation, "CacheRead", read, []))]
        if not self._graph.is_batch:
            raise StreamGraphError(
                f"cache() ({transformation.call_site}) of '{transformation.stream.name}' is used in a job that runs "
                "in streaming mode, and a cache is written in batch mode only: use bounded sources, and the runtime "
                "mode BATCH or AUTOMATIC"
            )
        write = specs.TwoPhaseSinkSpec(TwoPhaseSinkFunction(CacheSink(transformation.records)))
        self._add_cache_node(transformation, "CacheWrite", write, [upstreams])
        return upstreams

    def _add_cache_node(
        self,
        transformation: CacheTransformation,
        name: str,
        spec: specs.OperatorSpec,
        inputs: Sequence[Sequence[_Upstream]],
    ) -> StreamNode:
        return self._add_node(
            transformation,
            node_id=transformation.id,
            name=name,
            spec=spec,
            inputs=inputs,
            key_bys=(None,) * len(inputs),
            strategy=ChainingStrategy.HEAD,
            uid=f"{name} {transformation.id}",
        )

    def _add_operator(self, transformation: OperatorTransformation) -> StreamNode:
        spec = transformation.spec
        inputs = [self._upstreams[stream] for stream in transformation.inputs]
        strategy = transformation.chaining_strategy
        if isinstance(spec, _BROADCAST_STATE):
            strategy = ChainingStrategy.ALWAYS  # Flink's translators of these ignore the setting
        return self._add_node(
            transformation,
            node_id=transformation.id,
            name=_node_name(transformation),
            spec=spec,
            inputs=inputs,
            key_bys=transformation.key_bys,
            strategy=strategy,
            uid=transformation.uid,
            description=transformation.description,
            numbers_inputs=len(inputs) > 1 or isinstance(spec, specs.MultiInputSpec),
        )

    def _add_sink(self, transformation: SinkTransformation) -> None:
        """Adds the operators of a sink. Flink: `SinkTransformationTranslator`."""
        sink = transformation.spec.sink
        writer_id = self._take_id()
        committer_id = None
        if sink.has_committer:
            self._take_id()  # the partitioning between writer and committer
            committer_id = self._take_id()
        writer = self._add_node(
            transformation,
            node_id=writer_id,
            name=f"{transformation.name}: {specs.SinkWriterSpec.default_name}",
            spec=specs.SinkWriterSpec(sink),
            inputs=[self._upstreams[transformation.inputs[0]]],
            key_bys=(transformation.key_by,),
            strategy=transformation.chaining_strategy,
            uid=transformation.uid,
        )
        if committer_id is None:
            return
        self._take_id()  # the virtual node of that partitioning
        forward = Partitioner(PartitionerKind.FORWARD)
        mode = ExchangeMode.BATCH if self._graph.is_batch else ExchangeMode.UNDEFINED
        self._add_node(
            transformation,
            node_id=committer_id,
            name=f"{transformation.name}: {specs.SinkCommitterSpec.default_name}",
            spec=specs.SinkCommitterSpec(sink),
            inputs=[[_Upstream(writer, forward, mode)]],
            key_bys=(None,),
            strategy=transformation.chaining_strategy,
            uid=None if transformation.uid is None else f"Sink Committer: {transformation.uid}",
        )

    def _add_node(
        self,
        transformation: OperatorTransformation | SinkTransformation | CacheTransformation,
        *,
        node_id: int,
        name: str,
        spec: specs.OperatorSpec,
        inputs: Sequence[Sequence[_Upstream]],
        key_bys: tuple[KeyBy | None, ...],
        strategy: ChainingStrategy,
        uid: str | None,
        description: str | None = None,
        numbers_inputs: bool = False,
    ) -> StreamNode:
        self._check_uid(transformation, uid)
        is_keyed = any(key_by is not None for key_by in key_bys)
        parallelism = transformation.parallelism
        max_parallelism = transformation.max_parallelism
        node = StreamNode(
            id=node_id,
            transformation_id=transformation.id,
            name=name,
            spec=spec,
            parallelism=self._settings.parallelism if parallelism == UNSET else parallelism,
            parallelism_configured=transformation.parallelism_configured,
            max_parallelism=max_parallelism if max_parallelism > 0 else self._max_parallelism(),
            slot_sharing_group=transformation.slot_sharing_group or _common_group(inputs),
            chaining_strategy=self._adjusted(strategy, spec, is_keyed=is_keyed),
            call_site=transformation.call_site,
            key_bys=key_bys,
            uid=uid,
            uid_hash=transformation.uid_hash,
            description=description,
            buffer_timeout=transformation.buffer_timeout,
            output_type=getattr(transformation, "output_type", None),
        )
        self._graph.add_node(node)
        for number, upstreams in enumerate(inputs, start=1):
            for upstream in upstreams:
                self._connect(upstream, node, number if numbers_inputs else 0)
        return node

    def _max_parallelism(self) -> int:
        return self._settings.max_parallelism if self._settings.max_parallelism > 0 else UNSET

    def _adjusted(
        self, strategy: ChainingStrategy, spec: specs.OperatorSpec, *, is_keyed: bool
    ) -> ChainingStrategy:
        """A keyed operator whose input Flink sorts is the head of its chain (Flink: `BatchExecutionUtils`)."""
        sorts_input = is_keyed and (self._graph.is_batch or spec.emits_only_at_end)
        joins_a_chain = strategy in (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD_WITH_SOURCES)
        return ChainingStrategy.HEAD if sorts_input and joins_a_chain else strategy

    def _check_uid(self, transformation: Transformation, uid: str | None) -> None:
        if self._settings.auto_generate_uids or uid is not None or transformation.uid_hash:
            return
        raise StreamGraphError(
            f"{transformation.label} has neither a uid nor a uid hash, "
            "and pipeline.auto-generate-uids is false; call uid() on it, or allow generated ids"
        )

    def _connect(self, upstream: _Upstream, target: StreamNode, type_number: int) -> None:
        source = upstream.node
        partitioner = upstream.partitioner
        same = source.parallelism == target.parallelism
        if partitioner is None:
            partitioner = Partitioner(self._default_partitioner_kind(same_parallelism=same))
        elif partitioner.is_forward and not same:
            if partitioner.kind is not PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH:
                raise StreamGraphError(_forward_refusal(source, target))
            partitioner = Partitioner(PartitionerKind.HASH, key_by=partitioner.key_by)
        self._graph.add_edge(
            StreamEdge(
                index=self._graph.edge_count,
                source=source.id,
                target=target.id,
                type_number=type_number,
                partitioner=partitioner,
                exchange_mode=upstream.exchange_mode or ExchangeMode.UNDEFINED,
                tag=upstream.tag,
                partitioner_is_explicit=upstream.partitioner is not None,
            )
        )

    def _default_partitioner_kind(self, *, same_parallelism: bool) -> PartitionerKind:
        if not same_parallelism:
            return PartitionerKind.REBALANCE
        if self._graph.is_dynamic:
            return PartitionerKind.FORWARD_FOR_UNSPECIFIED
        return PartitionerKind.FORWARD


def _node_name(transformation: OperatorTransformation) -> str:
    if isinstance(transformation.spec, specs.SourceSpec | specs.LegacySourceSpec):
        return f"Source: {transformation.name}"
    if isinstance(transformation.spec, specs.LegacySinkSpec):
        return f"Sink: {transformation.name}"
    return transformation.name


def _common_group(inputs: Sequence[Sequence[_Upstream]]) -> str:
    """The group of all inputs, or `default` if they differ or there are none."""
    common: str | None = None
    for upstreams in inputs:
        for upstream in upstreams:
            if common is None:
                common = upstream.node.slot_sharing_group
            elif common != upstream.node.slot_sharing_group:
                return DEFAULT_SLOT_SHARING_GROUP
    return common or DEFAULT_SLOT_SHARING_GROUP


def _forward_refusal(source: StreamNode, target: StreamNode) -> str:
    return (
        f"{source.label} runs {source.parallelism} tasks and {target.label} runs "
        f"{target.parallelism}, but forward(), or reinterpreting a stream as keyed, keeps every record "
        "in its task; give both the same parallelism, or use rebalance(), rescale() or key_by()"
    )


_CHAINING = {
    "always": ChainingStrategy.ALWAYS,
    "head": ChainingStrategy.HEAD,
    "never": ChainingStrategy.NEVER,
}


def operator_settings(
    transformations: Sequence[Transformation], settings: Mapping[str, str]
) -> dict[Transformation, dict[str, str]]:
    """Assigns settings to operators.

    Args:
        transformations: All transformations of the program.
        settings: Values by `OPERATOR.SETTING`; OPERATOR is a uid or a name.

    Raises:
        StreamGraphError: No operator or more than one has the name, or the setting does not exist.
    """
    found: dict[Transformation, dict[str, str]] = {}
    if not settings:
        return found
    operators = [
        item
        for item in transformations
        if isinstance(item, (OperatorTransformation, SinkTransformation))
    ]
    for key, value in settings.items():
        name, _, setting = key.rpartition(".")
        if setting not in _SETTERS:
            close = get_close_matches(setting, _SETTERS, n=1)
            hint = f"did you mean '{close[0]}'? There" if close else "there"
            raise StreamGraphError(
                f"operator setting {key} = {value}: there is no setting '{setting}'; {hint} are "
                f"{', '.join(_SETTERS)}"
            )
        found.setdefault(_operator(operators, name, f"{key} = {value}"), {})[setting] = value
    return found


def with_settings(transformation: Transformation, settings: Mapping[str, str]) -> Transformation:
    """A copy of the operator with these settings. The user's transformation is not changed.

    Raises:
        StreamGraphError: A value is invalid.
    """
    if not settings:
        return transformation
    changed = copy(transformation)
    for setting, value in settings.items():
        _apply(changed, setting, value)
    return changed


def _apply(operator: Transformation, setting: str, value: str) -> None:
    try:
        _SETTERS[setting](operator, value)
    except (ValueError, KeyError) as error:
        expected = "always, head or never" if setting == "chaining" else "a number"
        raise StreamGraphError(
            f"{operator.label}: the operator setting {setting} is {value!r}; it must be {expected}"
        ) from error


def _operator(operators: Sequence[Transformation], name: str, setting: str) -> Transformation:
    by_uid = [operator for operator in operators if operator.uid == name]
    found = by_uid or [operator for operator in operators if operator.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(str(operator.call_site) for operator in found)
        raise StreamGraphError(
            f"operator setting {setting}: {len(found)} operators are named '{name}' ({places}); give the operator a "
            "uid in the program, and use that"
        )
    names = sorted({operator.uid or operator.name for operator in operators})
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}"
    raise StreamGraphError(
        f"operator setting {setting}: no operator has the uid or the name '{name}'; {hint}"
    )


def _set_buffer_timeout(operator: Any, value: str) -> None:
    timeout = int(value)
    if timeout < -1:
        raise ValueError(value)
    operator.buffer_timeout = timeout


_SETTERS: dict[str, Callable[[Any, str], None]] = {
    "parallelism": lambda operator, value: operator.set_parallelism(int(value)),
    "max-parallelism": lambda operator, value: operator.set_max_parallelism(int(value)),
    "name": lambda operator, value: setattr(operator, "name", value),
    "uid": lambda operator, value: setattr(operator, "uid", value),
    "chaining": lambda operator, value: setattr(
        operator, "chaining_strategy", _CHAINING[value.lower()]
    ),
    "buffer-timeout": _set_buffer_timeout,
    "slot-sharing-group": lambda operator, value: setattr(operator, "slot_sharing_group", value),
}
