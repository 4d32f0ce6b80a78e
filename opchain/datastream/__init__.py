"""The DataStream API, with the modules of PyFlink. PyFlink: pyflink.datastream.

A name is imported when it is first used. So importing this package is fast, and a module of functions on an executor
never imports the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.reexports import reexports

if TYPE_CHECKING:
    from opchain.datastream.async_data_stream import AsyncDataStream
    from opchain.datastream.checkpoint_config import CheckpointConfig
    from opchain.datastream.checkpoint_storage import (
        CheckpointStorage,
        CustomCheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from opchain.datastream.checkpointing_mode import CheckpointingMode
    from opchain.datastream.data_stream import (
        AllWindowedStream,
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
        DataStream,
        DataStreamSink,
        DataStreamUtils,
        KeyedStream,
        WindowedStream,
    )
    from opchain.datastream.execution_mode import RuntimeExecutionMode
    from opchain.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
    from opchain.datastream.functions import (
        AggregateFunction,
        AllWindowFunction,
        AsyncBatchFunction,
        AsyncFunction,
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        BroadcastProcessFunction,
        CheckpointedFunction,
        CheckpointListener,
        CoFlatMapFunction,
        CoGroupFunction,
        CoMapFunction,
        CoProcessFunction,
        FilterFunction,
        FlatJoinFunction,
        FlatMapFunction,
        JoinFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeySelector,
        MapFunction,
        ParallelSourceFunction,
        Partitioner,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessJoinFunction,
        ProcessWindowFunction,
        ReduceFunction,
        RuntimeContext,
        SinkFunction,
        SourceFunction,
        WindowFunction,
    )
    from opchain.datastream.output_tag import FailedRecord, OutputTag
    from opchain.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from opchain.datastream.state_backend import (
        CustomStateBackend,
        EmbeddedRocksDBStateBackend,
        HashMapStateBackend,
        PredefinedOptions,
        StateBackend,
    )
    from opchain.datastream.stream_execution_environment import StreamExecutionEnvironment
    from opchain.datastream.time_domain import TimeDomain
    from opchain.datastream.timerservice import TimerService
    from opchain.datastream.window import (
        CountWindow,
        GlobalWindow,
        MergingWindowAssigner,
        TimeWindow,
        Trigger,
        TriggerResult,
        Window,
        WindowAssigner,
    )

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedStream",
    "AsyncBatchFunction",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "DataStreamUtils",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointRetention",
    "FailedRecord",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "HashMapStateBackend",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputTag",
    "ParallelSourceFunction",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]

__getattr__ = reexports(
    __name__,
    data_stream="AllWindowedStream DataStreamUtils",
    functions="AllWindowFunction AsyncBatchFunction CheckpointListener CheckpointedFunction CoGroupFunction FlatJoinFunction JoinFunction ParallelSourceFunction ProcessAllWindowFunction ProcessJoinFunction",
    output_tag="FailedRecord",
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
