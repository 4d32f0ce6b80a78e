"""What each operator is: frozen values that the compiler reads and executors receive.

A spec holds what the user handed over (functions, strategies, windows) and no state. How it runs is
the operator of the same name beside this file, and the emitter in the compiler's codegen.

`default_name` is the name Flink gives; `is_yielding` says that Flink's operator waits for mail while
it processes, so that it is never chained behind a legacy source; `emits_only_at_end` says that
nothing comes out before the input ends (`isOutputOnlyAfterEndOfStream`); `takes_batches` that a sink
is handed the records of a turn at once. Timestamps travel only where an operator that reads them lies
behind one that makes them.
"""

from __future__ import annotations

from opchain.runtime.operators.specs.keyed_input import (
    CombinedReduceSpec,
    FullWindowSpec,
    KeyedProcessSpec,
    ReduceSpec,
    WindowSpec,
)
from opchain.runtime.operators.specs.one_input import (
    AsyncWaitSpec,
    FilterSpec,
    FlatMapSpec,
    MapBatchesSpec,
    MapPartitionSpec,
    MapSpec,
    ProcessSpec,
    TimestampsWatermarksSpec,
)
from opchain.runtime.operators.specs.operator_spec import (
    OperatorSpec,
)
from opchain.runtime.operators.specs.sinks import (
    CollectSinkSpec,
    LegacySinkSpec,
    SinkCommitterSpec,
    SinkSpec,
    SinkWriterSpec,
    TwoPhaseSinkSpec,
)
from opchain.runtime.operators.specs.sources import (
    InputFormatSourceSpec,
    LegacySourceSpec,
    SourceSpec,
)
from opchain.runtime.operators.specs.two_inputs import (
    BroadcastProcessSpec,
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    IntervalJoinSpec,
    KeyedBroadcastProcessSpec,
    KeyedCoProcessSpec,
    MultiInputSpec,
)

__all__ = [
    "AsyncWaitSpec",
    "BroadcastProcessSpec",
    "CoFlatMapSpec",
    "CoMapSpec",
    "CoProcessSpec",
    "CollectSinkSpec",
    "CombinedReduceSpec",
    "FilterSpec",
    "FlatMapSpec",
    "FullWindowSpec",
    "InputFormatSourceSpec",
    "IntervalJoinSpec",
    "KeyedBroadcastProcessSpec",
    "KeyedCoProcessSpec",
    "KeyedProcessSpec",
    "LegacySinkSpec",
    "LegacySourceSpec",
    "MapBatchesSpec",
    "MapPartitionSpec",
    "MapSpec",
    "MultiInputSpec",
    "OperatorSpec",
    "ProcessSpec",
    "ReduceSpec",
    "SinkCommitterSpec",
    "SinkSpec",
    "SinkWriterSpec",
    "SourceSpec",
    "TimestampsWatermarksSpec",
    "TwoPhaseSinkSpec",
    "WindowSpec",
]
