"""Functions that users subclass. PyFlink: pyflink.datastream.functions."""

from __future__ import annotations

from opchain.runtime.functions.aggregate_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.async_functions import (
    AsyncBatchFunction,
    AsyncFunction,
    AsyncFunctionDescriptor,
)
from opchain.runtime.functions.async_retry_strategies import AsyncRetryPredicate, AsyncRetryStrategy
from opchain.runtime.functions.broadcast_process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from opchain.runtime.functions.checkpointed_function import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from opchain.runtime.functions.delta_function import DeltaFunction
from opchain.runtime.functions.function import DistributedCache, Function, RuntimeContext
from opchain.runtime.functions.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from opchain.runtime.functions.key_selectors import KeySelector, NullByteKeySelector, Partitioner
from opchain.runtime.functions.map_batches_function import MapBatchesFunction
from opchain.runtime.functions.map_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
)
from opchain.runtime.functions.map_partition_function import MapPartitionFunction
from opchain.runtime.functions.process_functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.functions.source_sink_functions import (
    ParallelSourceFunction,
    SinkFunction,
    SourceFunction,
)
from opchain.runtime.functions.window_functions import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.runtime.state.state_stores import KeyedStateStore
from opchain.runtime.timer_service import TimerService

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncBatchFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "DeltaFunction",
    "DistributedCache",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapBatchesFunction",
    "MapFunction",
    "MapPartitionFunction",
    "NullByteKeySelector",
    "ParallelSourceFunction",
    "Partitioner",
    "PassThroughAllWindowFunction",
    "PassThroughWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]
