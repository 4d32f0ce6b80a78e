"""Translates operators to unoptimized code: one function for each operator kind.

Every function of the user's is called, every record counted, every key selected where it is needed. Rules
(compiler/codegen/rules) make this fast. A batch function looks like this:

    for value in values:
        op_1.records_in += 1
        value_1 = parse_1(value)
        op_1.records_out += 1
        if is_click_2(value_1):
            ...
            send(0, value_1, key=user_0(value_1))

An operator that emits outside record processing (timers, watermarks, end of input) is called as an object.
Everything downstream of it becomes a function `emit_I`, so the code of each operator appears once. If blocks would nest
too deeply for CPython, the rest of the chain becomes a function `run_I`. A function `fire_I` runs the
user's function on the keys of a window that fires, or its `on_timer` for the event-time timers that are due. It sends the
results itself if there are no operators downstream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.codegen.lower.lowering import Lowering
from opchain.compiler.codegen.lower.operators import (
    gather,
    lower_broadcast_process,
    lower_co_flat_map,
    lower_co_map,
    lower_filter,
    lower_flat_map,
    lower_keyed_process,
    lower_legacy_sink,
    lower_map,
    lower_map_batches,
    lower_process,
    lower_reduce,
    lower_sink_writer,
    lower_timestamps,
)
from opchain.compiler.codegen.lower.windows import lower_window
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form
    from opchain.compiler.codegen.lower.lowering import Lower

LOWERINGS: dict[type[specs.OperatorSpec], Lower] = {
    specs.SourceSpec: lower_timestamps,
    specs.InputFormatSourceSpec: lower_timestamps,
    specs.LegacySourceSpec: lower_timestamps,
    specs.TimestampsWatermarksSpec: lower_timestamps,
    specs.MapSpec: lower_map,
    specs.FilterSpec: lower_filter,
    specs.FlatMapSpec: lower_flat_map,
    specs.MapBatchesSpec: lower_map_batches,
    specs.ProcessSpec: lower_process,
    specs.KeyedProcessSpec: lower_keyed_process,
    specs.KeyedCoProcessSpec: lower_keyed_process,
    specs.ReduceSpec: lower_reduce,
    specs.CombinedReduceSpec: lower_reduce,
    specs.WindowSpec: lower_window,
    specs.CoMapSpec: lower_co_map,
    specs.CoFlatMapSpec: lower_co_flat_map,
    specs.CoProcessSpec: lower_process,
    specs.BroadcastProcessSpec: lower_broadcast_process,
    specs.KeyedBroadcastProcessSpec: lower_broadcast_process,
    specs.SinkWriterSpec: lower_sink_writer,
    specs.CollectSinkSpec: gather,
    specs.LegacySinkSpec: lower_legacy_sink,
    specs.TwoPhaseSinkSpec: gather,
}
"""Every other kind is called as an object: `Lowering.call`."""


def lowered(form: Form) -> None:
    """Fills a form with the functions of its vertex."""
    Lowering(form, LOWERINGS).vertex()
