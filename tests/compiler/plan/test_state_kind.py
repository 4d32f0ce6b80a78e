from typing import Any, cast

import pytest

from opchain.compiler.graph.partitioner import KeyBy
from opchain.compiler.graph.stream_graph import StreamNode
from opchain.compiler.graph.transformation import CallSite, ChainingStrategy
from opchain.compiler.plan.from_plan import state_kind
from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import MapFunction
from opchain.runtime.functions.state import CheckpointedFunction
from opchain.runtime.program import operator_specs as specs

ANY = cast("Any", None)


class Rich(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value


class Checkpointed(Rich, CheckpointedFunction):
    def snapshot_state(self, context: object) -> None: ...

    def initialize_state(self, context: object) -> None: ...


PLAIN = as_function(MapFunction, abs)


@pytest.mark.parametrize(
    ("spec", "is_keyed", "state"),
    [
        (specs.MapSpec(PLAIN), False, None),
        (specs.MapSpec(PLAIN), True, None),
        (specs.MapSpec(Rich()), False, None),
        (specs.MapSpec(Rich()), True, "keyed state"),
        (specs.MapSpec(Checkpointed()), False, "operator state"),
        (specs.ReduceSpec(PLAIN), True, "keyed state"),
        (specs.FullWindowSpec(ANY), True, "keyed state"),
        (specs.MapPartitionSpec(ANY), False, None),
        (specs.SourceSpec(ANY), False, "source position"),
        (specs.InputFormatSourceSpec(ANY), False, "source position"),
        (specs.LegacySourceSpec(ANY), False, None),
        (specs.AsyncWaitSpec(ANY, 0), False, "records in flight"),
        (specs.BroadcastProcessSpec(ANY), False, "broadcast state"),
        (specs.KeyedBroadcastProcessSpec(ANY), True, "keyed and broadcast state"),
        (specs.SinkWriterSpec(ANY), True, None),
        (specs.SinkCommitterSpec(ANY), False, "uncommitted output"),
    ],
)
def test_state_kinds_of_operators_in_a_savepoint(
    spec: specs.OperatorSpec, is_keyed: bool, state: str | None
) -> None:
    node = StreamNode(
        id=1,
        transformation_id=1,
        name="it",
        spec=spec,
        parallelism=1,
        parallelism_configured=False,
        max_parallelism=-1,
        slot_sharing_group="default",
        chaining_strategy=ChainingStrategy.ALWAYS,
        call_site=CallSite("program.py", 1),
        key_bys=(KeyBy(abs),) if is_keyed else (None,),
    )
    assert state_kind(node) == state
