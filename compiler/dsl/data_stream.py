"""DataStream: transformations, partitioners and sinks of a stream. DataStreamSink: the sink at the end of a stream."""

# ruff: noqa: PLC0415 - modules of streams need each other (a KeyedStream is a DataStream), so they are imported late

from __future__ import annotations

import warnings
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from opchain.compiler.dsl.argument_checks import (
    at_call,
    checked,
    checked_function,
    checked_stream,
    declared_type,
)
from opchain.compiler.dsl.captured_functions import captured, captured_selector
from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.stream import Stream, set_uid
from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.transformation import (
    CacheTransformation,
    ChainingStrategy,
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    UnionTransformation,
    user_call_site,
)
from opchain.runtime.connectors.file_sink import StreamingFileSink
from opchain.runtime.connectors.simple_sinks import PrintSinkFunction
from opchain.runtime.errors import GraphError
from opchain.runtime.functions import key_selectors
from opchain.runtime.functions.callables import name_of
from opchain.runtime.functions.key_selectors import KeySelector, Projection
from opchain.runtime.functions.process_functions import KeyedProcessFunction, ProcessFunction
from opchain.runtime.functions.record_functions import (
    FilterFunction,
    FlatMapFunction,
    MapBatchesFunction,
    MapFunction,
)
from opchain.runtime.functions.sink import Sink
from opchain.runtime.functions.source_sink_functions import SinkFunction, TwoPhaseSinkFunction
from opchain.runtime.java_objects import no_java_attribute
from opchain.runtime.program.operator_specs import (
    CollectSinkSpec,
    FilterSpec,
    FlatMapSpec,
    LegacySinkSpec,
    MapSpec,
    ProcessSpec,
    SinkSpec,
    TimestampsWatermarksSpec,
    TwoPhaseSinkSpec,
)
from opchain.runtime.types.coders import collected_converter
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.type_variables import K, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.compiler.dsl.joins import CoGroupedStreams, JoinedStreams
    from opchain.compiler.dsl.keyed_stream import CachedDataStream, KeyedStream
    from opchain.compiler.dsl.windowed_stream import AllWindowedStream, PartitionWindowedStream
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup
    from opchain.runtime.functions.state_descriptors import MapStateDescriptor
    from opchain.runtime.functions.window import Window
    from opchain.runtime.watermarks.strategy import WatermarkStrategy
    from opchain.runtime.windows.assigners import WindowAssigner

    W = TypeVar("W", bound=Window)


class DataStreamSink(Generic[T]):
    """A sink of the program. Each setter returns the same object.

    For a sink of `sink_to`, the settings apply to its writer and its committer.
    """

    def __init__(
        self, environment: StreamExecutionEnvironment, transformation: Transformation
    ) -> None:
        self._environment = environment
        self.transformation = transformation

    def __repr__(self) -> str:
        return f"<DataStreamSink {self.transformation.label}>"

    def name(self, name: str) -> DataStreamSink[T]:
        """Names the sink, in the plan, the logs and the metrics."""
        self.transformation.name = checked(name, str, "name", "the name")
        return self

    def uid(self, uid: str) -> DataStreamSink[T]:
        """Sets the uid of the sink. A restore finds the sink's state by its uid."""
        set_uid(self.transformation, uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStreamSink[T]:
        """Sets the operator id that the sink has in an existing savepoint: 32 hex digits.

        Raises:
            GraphError: The sink was added with `sink_to`: it becomes several operators.
        """
        self.transformation.set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink[T]:
        """Sets the number of subtasks that write."""
        self.transformation.set_parallelism(parallelism)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> DataStreamSink[T]:
        """Sets the maximum parallelism for rescaling. In Flink, only the Java API has this method."""
        self.transformation.set_max_parallelism(max_parallelism)
        return self

    def set_description(self, description: str) -> DataStreamSink[T]:
        """Sets a description for plans. It may be longer than the name."""
        self.transformation.description = checked(
            description, str, "set_description", "the description"
        )
        return self

    def disable_chaining(self) -> DataStreamSink[T]:
        """Never chains the sink to its input."""
        self.transformation.chaining_strategy = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> DataStreamSink[T]:
        """Puts the sink into a slot sharing group, by name or with its resources."""
        self.transformation.slot_sharing_group = self._environment.slot_sharing_group_name(
            slot_sharing_group
        )
        return self


_BY_KEY = {PartitionerKind.HASH, PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH}

R = TypeVar("R")
T2 = TypeVar("T2")

_ON_KEYED_STREAMS = frozenset(
    {
        "count_window",
        "interval_join",
        "max",
        "max_by",
        "min",
        "min_by",
        "reduce",
        "sum",
        "window",
    }
)


class DataStream(Stream[T]):
    """A stream of records.

    >>> from opchain import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.from_collection([1, 2, 3]).map(lambda n: n * n).get_name()
    'Map'

    Flink: `DataStream` and `SingleOutputStreamOperator`. PyFlink also has one class for both.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _ON_KEYED_STREAMS:
                raise AttributeError(
                    f"{at_call(name)}: {self.transformation.label} has no key, but {name}() needs one; call "
                    f"key_by() first",
                    name=None,  # so Python does not propose a similar name
                )
            if name.startswith("_j_"):
                raise no_java_attribute(self, name)
            message = f"a {type(self).__name__} has no attribute {name!r}"
            longer = [known for known in dir(type(self)) if known.endswith(f"_{name}")]
            if longer and not longer[0].startswith("_"):
                # Without the name, Python does not propose a similar one, such as _collected() for collect().
                raise AttributeError(f"{message}; did you mean {' or '.join(longer)}?", name=None)
            raise AttributeError(message)

    def map(
        self, func: MapFunction[T, R] | Callable[[T], R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Turns each record into one record.

        Warns if the function is found to return a generator: the generator object itself would become the record.
        """
        checked_function(func, MapFunction, "map", callables=True)
        from opchain.compiler.codegen.function_source import returns_generator

        if returns_generator(func):
            warnings.warn(
                f"{at_call('map')}: '{name_of(func)}' returns a generator, which becomes one record and can be "
                "neither sent nor stored; return a list, or use flat_map to emit each value",
                stacklevel=2,
            )
        return self.transform(MapSpec(func), output_type)

    def flat_map(
        self,
        func: FlatMapFunction[T, R] | Callable[[T], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Turns each record into any number of records.

        Warns if the function is found to return a string: each character would become a record.
        """
        checked_function(func, FlatMapFunction, "flat_map", callables=True)
        from opchain.compiler.codegen.function_source import returns_text

        if returns_text(func):
            warnings.warn(
                f"{at_call('flat_map')}: '{name_of(func)}' returns a text, and each of its characters becomes a "
                "record; return [text] for one record, or use map",
                stacklevel=2,
            )
        return self.transform(FlatMapSpec(func), output_type)

    def filter(self, func: FilterFunction[T] | Callable[[T], bool]) -> DataStream[T]:
        """Keeps the records for which the function is true."""
        checked_function(func, FilterFunction, "filter", callables=True)
        return self.transform(FilterSpec(func), declared_type(self.transformation))

    def map_batches(
        self,
        func: MapBatchesFunction | Callable[[Any], Any],
        output_type: DeclaredType = None,
        batch_format: str = "list",
        *,
        one_to_one: bool = False,
    ) -> DataStream[Any]:
        """Turns batches of records into any number of records.

        Each call gets the records that are available to the task.

        A batch holds up to `opchain.batch-size` records. It never holds records from before and after the same
        watermark. The results have no timestamps. With `one_to_one` they keep those of the input records: the function
        then promises one result per record, in the same order. On a keyed stream, the function has no access to the
        key.

        Args:
            func: Takes a batch; returns one batch, or yields several.
            output_type: The type of the results.
            batch_format: "list", or "arrow" for a `pyarrow.RecordBatch`. With "arrow", the type of the stream must be
                declared. The results are Rows with the columns of the batch, or the values of its only column if
                `output_type` is not a row type.
            one_to_one: See above. The task fails if the number of results differs from the number of records.

        >>> from opchain import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_sequence(1, 3).map_batches(lambda batch: [sum(batch)]).get_name()
        'Map Batches'
        """
        from opchain.compiler.dsl.argument_checks import batches_spec

        checked_function(func, MapBatchesFunction, "map_batches", callables=True)
        spec = batches_spec(self, func, output_type, batch_format, one_to_one=one_to_one)
        return self.transform(spec, output_type, is_keyed=False)

    def process(
        self, func: ProcessFunction[T, R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Processes each record with a ProcessFunction, which also gets its timestamp.

        As in PyFlink, a KeyedProcessFunction is also accepted. It then raises a TypeError when it uses the key or
        timers.
        """
        checked_function(func, (ProcessFunction, KeyedProcessFunction), "process")
        return self.transform(ProcessSpec(func), output_type)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Makes a tuple of some fields of each record, in the order given.

        Flink requires a declared tuple type. Here the records may be anything that can be indexed. If a type is
        declared, the result has a tuple type with the types of these fields.

        Raises:
            ValueError: No index is given, an index is negative, or the declared type has fewer fields.
        """
        from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo

        for index in field_indexes:
            if checked(index, int, "project", "a field index") < 0:
                raise ValueError(f"{at_call('project')}: field index {index} is negative")
        if not field_indexes:
            raise ValueError(f"{at_call('project')}: name at least one field index")
        record_type, output_type = declared_type(self.transformation), None
        if isinstance(record_type, (RowTypeInfo, TupleTypeInfo)):
            field_types = record_type.field_types
            if max(field_indexes) >= len(field_types):
                raise ValueError(
                    f"{at_call('project')}: records of the type {record_type} have no field "
                    f"{max(field_indexes)}; their fields are 0 to {len(field_types) - 1}"
                )
            output_type = TupleTypeInfo(tuple(field_types[index] for index in field_indexes))
        return self.transform(MapSpec(Projection(field_indexes)), output_type, name="Projection")

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy[T]
    ) -> DataStream[T]:
        """Sets the event time of records, and emits watermarks.

        The operator has the parallelism of its input, so it is chained to the input. The resulting stream has no key.
        """
        from opchain.runtime.watermarks.strategy import WatermarkStrategy

        call = "assign_timestamps_and_watermarks"
        checked(watermark_strategy, WatermarkStrategy, call, "the strategy")
        return self.transform(
            # A later with_timestamp_assigner() changes the program's own object.
            TimestampsWatermarksSpec(copy(watermark_strategy)),
            declared_type(self.transformation),
            parallelism=self.transformation.parallelism,
            is_keyed=False,
        )

    def key_by(
        self,
        key_selector: KeySelector[T, K] | Callable[[T], K],
        key_type: DeclaredType = None,
    ) -> KeyedStream[K, T]:
        """Sends records with equal keys to the same subtask, and scopes state and timers to the key.

        On a keyed stream, the new key replaces the old one.
        """
        from opchain.compiler.dsl.keyed_stream import KeyedStream

        checked_function(key_selector, KeySelector, "key_by", callables=True)
        return KeyedStream.by_hash(self, key_selector, key_type)

    def union(self, *streams: DataStream[T]) -> DataStream[T]:
        """Merges streams with the same record type. The order of records of different streams is undefined."""
        for stream in streams:
            checked_stream(stream, DataStream, self, "union")
        united = [self.transformation, *(stream.transformation for stream in streams)]
        transformation = UnionTransformation(
            self._environment.next_transformation_id(),
            "Union",
            united,
            parallelism=united[0].parallelism,
            parallelism_configured=united[0].parallelism_configured,
            call_site=user_call_site(),
        )
        return self._stream_of(transformation)

    @overload
    def connect(self, ds: DataStream[T2]) -> ConnectedStreams[T, T2]: ...

    @overload
    def connect(self, ds: BroadcastStream[T2]) -> BroadcastConnectedStream[T, T2]: ...

    def connect(
        self, ds: DataStream[T2] | BroadcastStream[T2]
    ) -> ConnectedStreams[T, T2] | BroadcastConnectedStream[T, T2]:
        """Connects two streams, which may have different types, for one operator with shared state."""
        from opchain.compiler.dsl.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            checked_stream(ds.input_stream, DataStream, self, "connect")
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, checked_stream(ds, DataStream, self, "connect"))

    def join(self, other_stream: DataStream[T2]) -> JoinedStreams[T, T2]:
        """Starts a window join: `.where(key).equal_to(key).window(assigner).apply(function)`.

        Flink: `DataStream.join`. Not in PyFlink.
        """
        from opchain.compiler.dsl.joins import JoinedStreams

        return JoinedStreams(self, checked_stream(other_stream, DataStream, self, "join"))

    def co_group(self, other_stream: DataStream[T2]) -> CoGroupedStreams[T, T2]:
        """Starts a window co-group: `.where(key).equal_to(key).window(assigner).apply(function)`.

        Flink: `DataStream.coGroup`. Not in PyFlink.
        """
        from opchain.compiler.dsl.joins import CoGroupedStreams

        return CoGroupedStreams(self, checked_stream(other_stream, DataStream, self, "co_group"))

    def window_all(self, window_assigner: WindowAssigner[T, W]) -> AllWindowedStream[T, W]:
        """Groups all records into windows, in a single subtask."""
        from opchain.compiler.dsl.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[T, Any]:
        """Groups the records into windows of `size` records, in a single subtask.

        With `slide`, a window starts every `slide` records; without it, windows do not overlap.

        Flink: `DataStream.countWindowAll`. Not in PyFlink.
        """
        from opchain.compiler.dsl.keyed_stream import count_windows

        return self.window_all(count_windows("count_window_all", size, slide))

    def full_window_partition(self) -> PartitionWindowedStream[T]:
        """Collects all records of a subtask (or of a key) until the input ends.

        Flink: `DataStream.fullWindowPartition`. Not in PyFlink.
        """
        from opchain.compiler.dsl.windowed_stream import PartitionWindowedStream

        return PartitionWindowedStream(self)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """The stream of the records that this operator emits to a tag."""
        checked(output_tag, OutputTag, "get_side_output", "the tag")
        transformation = self.transformation
        if not isinstance(transformation, OperatorTransformation):
            raise GraphError(
                f"{at_call('get_side_output')}: side outputs belong to operators, but "
                f"{transformation.label} is not an operator; call get_side_output() on the operator itself"
            )
        known = transformation.requested_side_outputs.setdefault(output_tag.tag_id, output_tag)
        if known.type_info != output_tag.type_info:
            raise GraphError(
                f"{at_call('get_side_output')}: {transformation.label} already has a side output '{output_tag.tag_id}' of "
                f"type {known.type_info!r}, not {output_tag.type_info!r}; use one OutputTag for both"
            )
        return self._stream_of(
            SideOutputTransformation(
                self._environment.next_transformation_id(),
                transformation,
                output_tag,
                call_site=user_call_site(),
            )
        )

    def cache(self) -> CachedDataStream[T]:
        """Keeps the records of this operator or side output for later jobs of the environment.

        The first job that uses the returned stream writes the records. This job must run in batch mode. Later jobs read
        the records in any mode, and run none of the upstream operators. The records are pickled and kept in the
        driver's memory until `invalidate()` or `env.close()`.

        Raises:
            GraphError: The stream is a union or a partitioning.
        """
        transformation = self.transformation
        if not isinstance(transformation, (OperatorTransformation, SideOutputTransformation)):
            raise GraphError(
                f"{at_call('cache')}: only an operator or a side output has records to keep; call cache() before "
                "union(), rebalance() and the like"
            )
        environment = self._environment
        cached = CacheTransformation(
            environment.next_transformation_id(),
            transformation,
            call_site=user_call_site(),
            output_type=declared_type(transformation),
        )
        from opchain.compiler.dsl.keyed_stream import CachedDataStream

        environment.caches.append(cached.records)
        return CachedDataStream(environment, cached)

    # -- partitioners; the default is forward if the parallelism is equal, else rebalance

    def shuffle(self) -> DataStream[T]:
        """Sends each record to a random subtask. The choice is the same in every run."""
        return self.partition(PartitionerKind.SHUFFLE)

    def rebalance(self) -> DataStream[T]:
        """Distributes the records round-robin over all subtasks."""
        return self.partition(PartitionerKind.REBALANCE)

    def rescale(self) -> DataStream[T]:
        """Distributes the records round-robin over some of the subtasks.

        Each upstream subtask sends to a group of downstream subtasks, or each downstream subtask reads from a group of
        upstream subtasks.
        """
        return self.partition(PartitionerKind.RESCALE)

    def forward(self) -> DataStream[T]:
        """Sends each record to the subtask with the same index. The next operator must have the same parallelism."""
        return self.partition(PartitionerKind.FORWARD)

    def global_(self) -> DataStream[T]:
        """Sends all records to the first subtask.

        Flink: `DataStream.global`; `global` is a keyword in Python. Not in PyFlink.
        """
        return self.partition(PartitionerKind.GLOBAL)

    @overload
    def broadcast(self) -> DataStream[T]: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[T]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> DataStream[T] | BroadcastStream[T]:
        """Sends every record to every subtask.

        With state descriptors, the result is a BroadcastStream. Connect another stream with it, to process both streams
        with these broadcast states.
        """
        descriptors = (broadcast_state_descriptor, *other_broadcast_state_descriptors)
        if descriptors == (None,):
            return self.partition(PartitionerKind.BROADCAST)
        from opchain.compiler.dsl.connected_streams import BroadcastStream

        return BroadcastStream(self.partition(PartitionerKind.BROADCAST), descriptors)

    def partition_custom(
        self,
        partitioner: key_selectors.Partitioner[K] | Callable[[K, int], int],
        key_selector: KeySelector[T, K] | Callable[[T], K],
    ) -> DataStream[T]:
        """Sends each record to the subtask that `partitioner(key, number_of_subtasks)` chooses."""
        call = "partition_custom"
        checked_function(partitioner, key_selectors.Partitioner, call, callables=True)
        checked_function(key_selector, KeySelector, call, callables=True)
        return self.partition(
            PartitionerKind.CUSTOM,
            key_by=KeyBy(captured_selector(key_selector)),
            custom=captured(partitioner),
        )

    def partition(
        self,
        kind: PartitionerKind,
        *,
        exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED,
        key_by: KeyBy | None = None,
        custom: Any = None,
    ) -> DataStream[T]:
        """Sets any partitioner, with an exchange mode. Unlike the methods above, it also works on a keyed stream.

        Flink has no public method for this: its table planner creates such a PartitionTransformation directly, for
        FORWARD_FOR_UNSPECIFIED and FORWARD_FOR_CONSECUTIVE_HASH.

        Args:
            kind: The partitioner.
            exchange_mode: PIPELINED or BATCH forces that kind of exchange.
            key_by: The key, for HASH and FORWARD_FOR_CONSECUTIVE_HASH. Default: the key of the keyed stream.
            custom: The partition function, for CUSTOM.
        """
        checked(kind, PartitionerKind, "partition", "the kind")
        checked(exchange_mode, ExchangeMode, "partition", "the exchange mode")
        if key_by is None and kind in _BY_KEY:
            key_by = self.state_key
            if key_by is None:
                raise ValueError(
                    f"{at_call('partition')}: a {kind.value} partitioner needs a key; "
                    "pass key_by=KeyBy(selector), or call it on a keyed stream"
                )
        transformation = PartitionTransformation(
            self._environment.next_transformation_id(),
            self.transformation,
            Partitioner(kind, key_by, custom),
            exchange_mode,
            call_site=user_call_site(),
        )
        return self._stream_of(transformation)

    # -- sinks

    def add_sink(self, sink_func: SinkFunction[T]) -> DataStreamSink[T]:
        """Adds a SinkFunction, which takes the records of this stream."""
        checked_function(sink_func, SinkFunction, "add_sink")
        if isinstance(sink_func, StreamingFileSink):
            return self.sink_to(sink_func.file_sink)
        is_two_phase = isinstance(sink_func, TwoPhaseSinkFunction)
        return self._legacy_sink((TwoPhaseSinkSpec if is_two_phase else LegacySinkSpec)(sink_func))

    def sink_to(self, sink: Sink[T]) -> DataStreamSink[T]:
        """Adds a Sink, which takes the records of this stream: a writer and, if the sink has one, a committer."""
        checked_function(sink, Sink, "sink_to")
        record_type = declared_type(self.transformation)
        if record_type is not None:
            sink = sink.for_type(record_type)
        transformation = SinkTransformation(
            self._environment.next_transformation_id(),
            SinkSpec.default_name,
            self.transformation,
            spec=SinkSpec(sink),
            parallelism=self._environment.get_parallelism(),
            key_by=self.state_key,
            call_site=user_call_site(),
        )
        self._environment.add_operator(transformation)
        return DataStreamSink(self._environment, transformation)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink[T]:
        """Prints each record to the standard output of the driver. On Spark, when the job or the epoch has ended.

        With several subtasks, each line starts with the number of the subtask, counted from 1: `3> text`. With an
        identifier it is `id:3> text`, or `id> text` for a single subtask.
        """
        return self._print(sink_identifier, "print", to_stderr=False).name("Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink[T]:
        """Prints each record to standard error; see `print`."""
        return self._print(sink_identifier, "print_to_err", to_stderr=True).name(
            "Print to Std. Err"
        )

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[T]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Runs the program and returns the records of this stream: as an iterator, or with `limit` as a list.

        With a limit, sources of a bounded job stop early if they are chained to the collected stream and nothing else
        reads their records. Other operators process all records, so other sinks of the program get all of theirs. In
        PyFlink the job is cancelled, and other sinks get only a part.

        Close the iterator, or use it in a `with` statement: closing it ends the job. As in PyFlink, a keyed stream
        returns rows of key and record.
        """
        if limit is not None and checked(limit, int, "execute_and_collect", "the limit") < 1:
            raise ValueError(
                f"{at_call('execute_and_collect')}: the limit is {limit}; it must be at least 1"
            )
        name = "DataStream Collect" if job_execution_name is None else job_execution_name
        checked(name, str, "execute_and_collect", "the job's name")
        collected = self._collected()._collecting(limit)  # noqa: SLF001 - of this class
        self._environment.execute_async(name)
        if limit is None:
            return collected
        with collected:
            return list(islice(collected, limit))

    def collect_async(self) -> CloseableIterator[T]:
        """Adds a sink and returns an iterator of its records.

        It can be read once `env.execute_async()` has started the job.

        Flink: `DataStream.collectAsync`.
        """
        return self._collecting(limit=None)

    def _collecting(self, limit: int | None) -> CloseableIterator[T]:
        sink = self._legacy_sink(CollectSinkSpec(limit=limit), parallelism=1).transformation
        sink.uid = f"dataStreamCollect_{sink.id}"
        collected: CloseableIterator[T] = CloseableIterator(
            sink, collected_converter(declared_type(self.transformation))
        )
        self._environment.register_collect_iterator(collected)
        return collected

    def _collected(self) -> DataStream[T]:
        """The stream that `execute_and_collect` reads."""
        return self

    def to_dataframe(
        self,
        schema: Any = None,
        *,
        path: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """This stream as a Spark DataFrame.

        A bounded stream becomes a lazy DataFrame. Each action on it runs the upstream part of the program as one Spark
        job, so cache the DataFrame before several actions. These jobs do not run the other sinks of the program:
        `execute()` runs the sinks, without the operators that only the DataFrame needs. Accumulators, metrics and
        printed output of these operators are lost.

        An unbounded stream becomes a streaming DataFrame. Any number of queries can read it (`writeStream`), and each
        query gets each record exactly once. The stream stays part of the program: the job of `execute()` commits its
        records to a folder of Parquet files, epoch by epoch, and the queries read these files. So start the queries
        first, then the job, or read the folder from another program.

        Args:
            schema: A StructType, or DDL text. Records that are not rows take a single type and become the column
                `value`. None uses the declared type of the stream.
            path: For an unbounded stream: the folder of the files, or its URL. None uses a folder named after the
                stream's uid in `execution.checkpointing.dir` or, without checkpoints, a temporary folder of this
                process.
            options: For an unbounded stream: options of Spark's file source. By default files are never deleted; set
                `cleanSource` to delete them. `maxFilesPerTrigger` limits the files of a micro-batch.

        Flink: `StreamTableEnvironment.fromDataStream`. The DataFrame has no timestamps of records and no watermarks.
        Keep the time in a field if you need it.

        Raises:
            GraphError: The columns are unknown; the stream is bounded and has a path or options; or it is unbounded,
                and the program has checkpoints, but the stream has neither a uid nor a path.
            UnsupportedFeatureError: The job is configured to run in this process.
        """
        from opchain.compiler.dsl.stream_dataframe import dataframe_of_stream

        return dataframe_of_stream(self, schema, path, options)

    def _print(
        self, sink_identifier: str | None, call: str, *, to_stderr: bool
    ) -> DataStreamSink[T]:
        if sink_identifier is not None:
            checked(sink_identifier, str, call, "the sink identifier")
        record_type = declared_type(self.transformation)
        function = PrintSinkFunction(sink_identifier, to_stderr, record_type)
        return self._legacy_sink(LegacySinkSpec(function))

    def _legacy_sink(
        self, spec: LegacySinkSpec, parallelism: int | None = None
    ) -> DataStreamSink[T]:
        return DataStreamSink(
            self._environment,
            self.transform(
                spec, parallelism=parallelism, parallelism_configured=parallelism is not None
            ).transformation,
        )
