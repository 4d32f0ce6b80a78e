"""DataStream: the operations on a stream of records."""

# ruff: noqa: PLC0415 - streams make each other (a KeyedStream is a DataStream): those modules are
# imported where a stream of that kind is made.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from opchain.compiler.dsl.argument_checks import (
    at_call,
    checked,
    checked_function,
    checked_stream,
    declared_type,
)
from opchain.compiler.dsl.operator_attributes import OperatorAttributes
from opchain.compiler.dsl.partitioning import Partitioning
from opchain.compiler.dsl.sink_operations import SinkOperations
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import (
    OperatorTransformation,
    SideOutputTransformation,
    UnionTransformation,
)
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.field_functions import Projection
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.functions.map_functions import (
    FilterFunction,
    FlatMapFunction,
    MapBatchesFunction,
    MapFunction,
)
from opchain.runtime.functions.process_functions import KeyedProcessFunction, ProcessFunction
from opchain.runtime.java_objects import no_java_attribute
from opchain.runtime.program.operator_specs import (
    FilterSpec,
    FlatMapSpec,
    MapSpec,
    ProcessSpec,
    TimestampsWatermarksSpec,
)
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.type_variables import K, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from opchain.compiler.dsl.joined_streams import CoGroupedStreams, JoinedStreams
    from opchain.compiler.dsl.keyed_stream import KeyedStream
    from opchain.compiler.dsl.partition_window import PartitionWindowedStream
    from opchain.compiler.dsl.windowed_stream import AllWindowedStream
    from opchain.runtime.functions.window import Window
    from opchain.runtime.watermarks.strategy import WatermarkStrategy
    from opchain.runtime.windows.assigners import WindowAssigner

    W = TypeVar("W", bound=Window)

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


class DataStream(Partitioning[T], SinkOperations[T], OperatorAttributes[T]):
    """A stream of records.

    >>> from opchain import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.from_collection([1, 2, 3]).map(lambda n: n * n).get_name()
    'Map'

    Flink: `DataStream` and `SingleOutputStreamOperator`, which PyFlink makes one.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _ON_KEYED_STREAMS:
                raise AttributeError(
                    f"{at_call(name)}: '{self.transformation.name}' "
                    f"({self.transformation.call_site}) has no key, but {name}() needs one; call "
                    f"key_by() first"
                )
            if name.startswith("_j_"):
                raise no_java_attribute(self, name)
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")

    def map(
        self, func: MapFunction[T, R] | Callable[[T], R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Turns each record into one."""
        checked_function(func, MapFunction, "map", callables=True)
        return self.transform(MapSpec(func), output_type)

    def flat_map(
        self,
        func: FlatMapFunction[T, R] | Callable[[T], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Turns each record into any number of records."""
        checked_function(func, FlatMapFunction, "flat_map", callables=True)
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
        """Turns batches of records into any number of records: one call for what a task has at hand.

        A batch holds up to `opchain.batch-size` records, never one from behind a watermark together with one
        from before. Results have no timestamps, unless `one_to_one` promises as many results as records, in
        their order: then they keep them. On a keyed stream the function sees nothing of the key.

        Args:
            func: Takes a batch; returns one, or yields several.
            output_type: The type of the results.
            batch_format: "list", or "arrow" for a `pyarrow.RecordBatch`: then the stream's type must be
                declared, and results are Rows of the batch's columns, or the values of its one column where
                `output_type` is not a row's.
            one_to_one: See above; a task fails where it is broken.

        >>> from opchain import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_sequence(1, 3).map_batches(lambda batch: [sum(batch)]).get_name()
        'Map Batches'
        """
        from opchain.compiler.dsl.batches import batches_spec

        checked_function(func, MapBatchesFunction, "map_batches", callables=True)
        spec = batches_spec(self, func, output_type, batch_format, one_to_one=one_to_one)
        return self.transform(spec, output_type, is_keyed=False)

    def process(
        self, func: ProcessFunction[T, R], output_type: DeclaredType = None
    ) -> DataStream[R]:
        """Gives each record, with its timestamp and the clocks, to a ProcessFunction."""
        given: object = func
        if isinstance(given, KeyedProcessFunction):
            raise TypeError(
                f"{at_call('process')}: {type(func).__name__} is a KeyedProcessFunction, and "
                f"'{self.transformation.name}' ({self.transformation.call_site}) has no key; "
                "call key_by() first, or write a ProcessFunction"
            )
        checked_function(func, ProcessFunction, "process")
        return self.transform(ProcessSpec(func), output_type)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Makes a tuple of some fields of each record, in the order given.

        Flink wants a declared tuple type; here any record that can be indexed will do.
        """
        for index in field_indexes:
            if checked(index, int, "project", "a field index") < 0:
                raise ValueError(f"{at_call('project')}: field index {index} is negative")
        if not field_indexes:
            raise ValueError(f"{at_call('project')}: name at least one field index")
        return self.transform(MapSpec(Projection(field_indexes)), name="Projection")

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy[T]
    ) -> DataStream[T]:
        """Gives records their event time, and the stream its watermarks.

        Runs with the parallelism of its input, so that it chains to it, and without its key.
        """
        from opchain.runtime.watermarks.strategy import WatermarkStrategy

        call = "assign_timestamps_and_watermarks"
        checked(watermark_strategy, WatermarkStrategy, call, "the strategy")
        return self.transform(
            TimestampsWatermarksSpec(watermark_strategy),
            declared_type(self.transformation),
            parallelism=self.transformation.parallelism,
            is_keyed=False,
        )

    def key_by(
        self,
        key_selector: KeySelector[T, K] | Callable[[T], K],
        key_type: DeclaredType = None,
    ) -> KeyedStream[K, T]:
        """Brings records of equal keys to one subtask, and scopes state and timers to the key.

        On a keyed stream the new key replaces the old one.
        """
        from opchain.compiler.dsl.keyed_stream import KeyedStream

        checked_function(key_selector, KeySelector, "key_by", callables=True)
        return KeyedStream.by_hash(self, key_selector, key_type)

    def union(self, *streams: DataStream[T]) -> DataStream[T]:
        """Merges streams of one record type, in no particular order."""
        for stream in streams:
            checked_stream(stream, DataStream, self, "union")
        legs = [self.transformation, *(stream.transformation for stream in streams)]
        transformation = UnionTransformation(
            self._environment.next_transformation_id(),
            "Union",
            legs,
            parallelism=legs[0].parallelism,
            parallelism_configured=legs[0].parallelism_configured,
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
        """Pairs two streams of different types, to be processed by one operator with shared state."""
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

        Flink: `DataStream.join`; PyFlink has none.
        """
        from opchain.compiler.dsl.joined_streams import JoinedStreams

        return JoinedStreams(self, checked_stream(other_stream, DataStream, self, "join"))

    def co_group(self, other_stream: DataStream[T2]) -> CoGroupedStreams[T, T2]:
        """Starts a window co-group: `.where(key).equal_to(key).window(assigner).apply(function)`.

        Flink: `DataStream.coGroup`; PyFlink has none.
        """
        from opchain.compiler.dsl.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, checked_stream(other_stream, DataStream, self, "co_group"))

    def window_all(self, window_assigner: WindowAssigner[T, W]) -> AllWindowedStream[T, W]:
        """Groups all records into windows, in a single subtask."""
        from opchain.compiler.dsl.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def full_window_partition(self) -> PartitionWindowedStream[T]:
        """Collects all records of a subtask (or of a key) until the input ends.

        Flink: `DataStream.fullWindowPartition`; PyFlink has none.
        """
        from opchain.compiler.dsl.partition_window import PartitionWindowedStream

        return PartitionWindowedStream(self)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """The records that this operator emits to a tag."""
        checked(output_tag, OutputTag, "get_side_output", "the tag")
        transformation = self.transformation
        if not isinstance(transformation, OperatorTransformation):
            raise GraphError(
                f"{at_call('get_side_output')}: side outputs belong to operators, but "
                f"'{transformation.name}' ({transformation.call_site}) is not an operator; call "
                f"get_side_output() on the operator itself"
            )
        known = transformation.requested_side_outputs.setdefault(output_tag.tag_id, output_tag)
        if known.type_info != output_tag.type_info:
            raise GraphError(
                f"{at_call('get_side_output')}: '{transformation.name}' "
                f"({transformation.call_site}) already has a side output '{output_tag.tag_id}' of "
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

    def cache(self) -> DataStream[T]:
        """Not supported: nothing outlives a job here.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"{at_call('cache')}: caching a stream between jobs is not supported; "
            "write it to files in one job and read them in the next"
        )
