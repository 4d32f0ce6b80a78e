"""Builds the pipelines that conformance vectors describe, with the calls that a user would make."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import functions as user

from opchain.common import Configuration, Time, WatermarkStrategy
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.keyed_stream import DataStreamUtils
from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, PartitionerKind
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.datastream import (
    AsyncDataStream,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from opchain.datastream.state import MapStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.connectors.simple_sinks import (
    DiscardingSink,
    DiscardingSinkFunction,
)


class CommittingSink(DiscardingSink):
    """A sink that has a committer; nothing runs it."""

    has_committer = True


E = TypeVar("E", bound=Enum)
Spec = dict[str, Any]
Build = Callable[[StreamExecutionEnvironment, list[Any], Spec], Any]


class UnknownPartError(Exception):
    """The vector holds a kind, an attribute or a setting that this check does not know."""


def build(spec: Spec) -> tuple[StreamExecutionEnvironment, dict[int, int]]:
    """The environment with the pipeline drawn in it, and which spec node each transformation is of.

    Raises:
        UnknownPartError: The spec asks for something that is not known here.
        GraphError: The DSL refuses the pipeline.
    """
    env = environment(spec["env"])
    streams: dict[int, Any] = {}
    spec_nodes: dict[int, int] = {}
    for node in spec["nodes"]:
        registered = len(env.get_transformations())
        inputs = [_input(env, streams, each) for each in node.get("inputs", ())]
        kind = node["kind"]
        if kind not in _BUILDERS:
            raise UnknownPartError(f"kind {kind!r}")
        stream = _BUILDERS[kind](env, inputs, node)
        _set_attributes(stream, node)
        streams[node["id"]] = stream
        made = [*env.get_transformations()[registered:], stream.transformation]
        spec_nodes |= {transformation.id: node["id"] for transformation in made}
    return env, spec_nodes


_ENV_KEYS = {
    "chaining": "pipeline.operator-chaining.enabled",
    "chain_operators_with_different_max_parallelism": (
        "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
    ),
    "scheduler": "jobmanager.scheduler",
    "auto_parallelism": "execution.batch.adaptive.auto-parallelism.enabled",
    "batch_shuffle_mode": "execution.batch-shuffle-mode",
    "auto_generate_uids": "pipeline.auto-generate-uids",
    "vertex_name_include_index_prefix": "pipeline.vertex-name-include-index-prefix",
    "vertex_description_mode": "pipeline.vertex-description-mode",
}


def environment(settings: Spec) -> StreamExecutionEnvironment:
    """An environment with the settings of a spec."""
    configuration = Configuration()
    rest = dict(settings)
    parallelism = rest.pop("parallelism", None)
    max_parallelism = rest.pop("max_parallelism", None)
    runtime_mode = rest.pop("runtime_mode", "STREAMING")
    for name, value in rest.items():
        if name not in _ENV_KEYS:
            raise UnknownPartError(f"env setting {name!r}")
        if isinstance(value, bool):
            configuration.set_boolean(_ENV_KEYS[name], value)
        elif value is not None:
            configuration.set_string(_ENV_KEYS[name], value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    if parallelism is not None:
        env.set_parallelism(parallelism)
    if max_parallelism is not None:
        env.set_max_parallelism(max_parallelism)
    env.set_runtime_mode(_named(RuntimeExecutionMode, runtime_mode))
    return env


def _key_selector() -> Callable[[int], int]:
    # A new object for each call: Flink, and so we, compare selectors by identity.
    return lambda value: value


def _any_channel() -> Callable[[int, int], int]:
    return lambda key, channels: key % channels


def _five_seconds() -> TumblingEventTimeWindows:
    return TumblingEventTimeWindows.of(Time.seconds(5))


def _source(env: StreamExecutionEnvironment, _inputs: list[Any], _node: Spec) -> Any:
    source = NumberSequenceSource(1, 100)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "Sequence Source")


def _window_join(kind: str) -> Build:
    def join(_env: StreamExecutionEnvironment, inputs: list[Any], _node: Spec) -> Any:
        first, second = inputs
        started = first.join(second) if kind == "join" else first.co_group(second)
        windowed = started.where(_key_selector()).equal_to(_key_selector()).window(_five_seconds())
        return windowed.apply(user.Joined() if kind == "join" else user.Grouped())

    return join


def _interval_join(_env: StreamExecutionEnvironment, inputs: list[Any], _node: Spec) -> Any:
    joined = inputs[0].interval_join(inputs[1])
    return joined.between(Time.milliseconds(-1), Time.milliseconds(1)).process(user.Pairs())


def _connected(call: Callable[[Any], Any]) -> Build:
    return lambda _env, inputs, _node: call(inputs[0].connect(inputs[1]))


def _broadcast(function: Callable[[], Any]) -> Build:
    def process(_env: StreamExecutionEnvironment, inputs: list[Any], _node: Spec) -> Any:
        return (
            inputs[0].connect(inputs[1].broadcast(MapStateDescriptor("rules"))).process(function())
        )

    return process


def _on_first(call: Callable[[Any], Any]) -> Build:
    return lambda _env, inputs, _node: call(inputs[0])


def _multi_input(_env: StreamExecutionEnvironment, inputs: list[Any], _node: Spec) -> Any:
    # The vectors hold MultipleInputTransformations only, which have no key, even behind a key_by.
    plain = [DataStream(each.get_execution_environment(), each.transformation) for each in inputs]
    return multiple_input(plain, [user.once for _ in plain])


_BUILDERS: dict[str, Build] = {
    "source": _source,
    "legacy_source": lambda env, _inputs, _node: env.add_source(user.Numbers()),
    "legacy_parallel_source": lambda env, _i, _node: env.add_source(user.ParallelNumbers()),
    "map": _on_first(lambda stream: stream.map(user.identity)),
    "filter": _on_first(lambda stream: stream.filter(user.is_wanted)),
    "flat_map": _on_first(lambda stream: stream.flat_map(user.once)),
    "process": _on_first(lambda stream: stream.process(user.PassOn())),
    "assign_watermarks": _on_first(
        lambda stream: stream.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
    ),
    "async_wait": _on_first(
        lambda stream: AsyncDataStream.unordered_wait(stream, user.Lookup(), Time.seconds(5))
    ),
    "async_wait_ordered": _on_first(
        lambda stream: AsyncDataStream.ordered_wait(stream, user.Lookup(), Time.seconds(5))
    ),
    "full_window_map_partition": _on_first(
        lambda stream: stream.full_window_partition().map_partition(user.Whole())
    ),
    "window_all_tumbling_event": _on_first(
        lambda stream: stream.window_all(_five_seconds()).reduce(user.Reducer())
    ),
    "key_by": _on_first(lambda stream: stream.key_by(_key_selector())),
    "reinterpret_as_keyed": _on_first(
        lambda stream: DataStreamUtils.reinterpret_as_keyed_stream(stream, _key_selector())
    ),
    "reduce": _on_first(lambda stream: stream.reduce(user.Reducer())),
    "keyed_process": _on_first(lambda stream: stream.process(user.KeyedPassOn())),
    "window_tumbling_event": _on_first(
        lambda stream: stream.window(_five_seconds()).reduce(user.Reducer())
    ),
    "union": lambda _env, inputs, _node: inputs[0].union(*inputs[1:]),
    "side_output": lambda _env, inputs, node: inputs[0].get_side_output(OutputTag(node["tag"])),
    "co_map": _connected(lambda streams: streams.map(user.BothMapped())),
    "co_flat_map": _connected(lambda streams: streams.flat_map(user.BothFlatMapped())),
    "co_process": _connected(lambda streams: streams.process(user.BothProcessed())),
    "keyed_co_process": _connected(lambda streams: streams.process(user.BothProcessedByKey())),
    "broadcast_process": _broadcast(user.WithBroadcast),
    "keyed_broadcast_process": _broadcast(user.WithBroadcastByKey),
    "interval_join": _interval_join,
    "window_join": _window_join("join"),
    "window_co_group": _window_join("co_group"),
    "multi_input": _multi_input,
    "sink": _on_first(lambda stream: stream.sink_to(DiscardingSink())),
    "sink_committing": _on_first(lambda stream: stream.sink_to(CommittingSink())),
    "legacy_sink": _on_first(lambda stream: stream.add_sink(DiscardingSinkFunction())),
}

_CALLS: dict[str, Callable[[Any], Any]] = {
    "forward": lambda stream: stream.forward(),
    "rebalance": lambda stream: stream.rebalance(),
    "rescale": lambda stream: stream.rescale(),
    "shuffle": lambda stream: stream.shuffle(),
    "broadcast": lambda stream: stream.broadcast(),
    "global": lambda stream: stream.global_(),
    "custom": lambda stream: stream.partition_custom(_any_channel(), _key_selector()),
}
_INTERNAL = {"forward_for_unspecified", "forward_for_consecutive_hash"}


def _input(env: StreamExecutionEnvironment, streams: dict[int, Any], described: Spec) -> Any:
    unknown = described.keys() - {"from", "partitioner", "exchange_mode"}
    if unknown:
        raise UnknownPartError(f"input attribute {min(unknown)!r}")
    stream = streams[described["from"]]
    name = described.get("partitioner", "default")
    if "exchange_mode" in described or name in _INTERNAL:
        kind = _named(PartitionerKind, name.upper())
        mode = _named(ExchangeMode, described.get("exchange_mode", "UNDEFINED"))
        is_hash = kind is PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH
        key_by = KeyBy(_key_selector()) if is_hash else None
        custom = _any_channel() if kind is PartitionerKind.CUSTOM else None
        return stream.partition(kind, exchange_mode=mode, key_by=key_by, custom=custom)
    if name == "default":
        return stream
    if name not in _CALLS:
        raise UnknownPartError(f"partitioner {name!r}")
    return _CALLS[name](stream)


def _named(kinds: type[E], name: str) -> E:
    if name not in kinds.__members__:
        raise UnknownPartError(f"{kinds.__name__} {name!r}")
    return kinds[name]


def _set_chaining(stream: Any, value: str) -> None:
    if value == "start_new_chain":
        stream.start_new_chain()
    elif value == "disable":
        stream.disable_chaining()
    elif value == "head_with_sources":
        stream.set_chaining_strategy(ChainingStrategy.HEAD_WITH_SOURCES)
    elif value != "default":
        raise UnknownPartError(f"chaining {value!r}")


_ATTRIBUTES: dict[str, Callable[[Any, Any], Any]] = {
    "name": lambda stream, value: stream.name(value),
    "uid": lambda stream, value: stream.uid(value),
    "uid_hash": lambda stream, value: stream.set_uid_hash(value),
    "force_non_parallel": lambda stream, value: stream.force_non_parallel() if value else None,
    "parallelism": lambda stream, value: stream.set_parallelism(value),
    "max_parallelism": lambda stream, value: stream.set_max_parallelism(value),
    "slot_sharing_group": lambda stream, value: stream.slot_sharing_group(value),
    "chaining": _set_chaining,
    "description": lambda stream, value: stream.set_description(value),
    "buffer_timeout": lambda stream, value: stream.set_buffer_timeout(value),
}


def _set_attributes(stream: Any, node: Spec) -> None:
    unknown = node.keys() - _ATTRIBUTES.keys() - {"id", "kind", "inputs", "tag"}
    if unknown:
        raise UnknownPartError(f"attribute {min(unknown)!r}")
    for name, apply in _ATTRIBUTES.items():
        if node.get(name) is not None:
            apply(stream, node[name])
