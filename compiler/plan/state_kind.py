"""Which operators have something in a savepoint, and what: the ones whose operator id must not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.functions.callables import CallableFunction
from opchain.runtime.functions.checkpointed_function import CheckpointedFunction
from opchain.runtime.operators import specs

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamNode

KEYED_STATE = "keyed state"

_ALWAYS: dict[type[specs.OperatorSpec], str] = {
    specs.SourceSpec: "read positions",
    specs.InputFormatSourceSpec: "read positions",
    specs.AsyncWaitSpec: "records in flight",
    specs.ReduceSpec: KEYED_STATE,
    specs.WindowSpec: KEYED_STATE,
    specs.FullWindowSpec: KEYED_STATE,
    specs.IntervalJoinSpec: KEYED_STATE,
    specs.BroadcastProcessSpec: "broadcast state",
    specs.KeyedBroadcastProcessSpec: "keyed and broadcast state",
    specs.SinkCommitterSpec: "what is not committed",
}


def state_kind(node: StreamNode) -> str | None:
    """What a savepoint holds of an operator; None where it can hold nothing.

    An object with a runtime context may make keyed state on a keyed stream at run time, where nobody
    can see it from outside, so it counts as stateful. A plain callable has no such context.
    """
    always = _ALWAYS.get(type(node.spec))
    if always is not None:
        return always
    function = getattr(node.spec, "function", None)
    if isinstance(function, CheckpointedFunction):
        return "operator state"
    if node.is_keyed and function is not None and not isinstance(function, CallableFunction):
        return KEYED_STATE
    return None
