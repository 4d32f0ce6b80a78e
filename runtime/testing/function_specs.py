"""Which operator a function is tested in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.aggregate_functions import ReduceFunction
from opchain.runtime.functions.map_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapBatchesFunction,
    MapFunction,
    MapPartitionFunction,
)
from opchain.runtime.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.functions.state_descriptors import MapStateDescriptor

_SPECS: tuple[tuple[type, type[specs.OperatorSpec]], ...] = (
    (MapFunction, specs.MapSpec),
    (FilterFunction, specs.FilterSpec),
    (FlatMapFunction, specs.FlatMapSpec),
    (MapBatchesFunction, specs.MapBatchesSpec),
    (ReduceFunction, specs.ReduceSpec),
    (ProcessFunction, specs.ProcessSpec),
    (KeyedProcessFunction, specs.KeyedProcessSpec),
    (CoMapFunction, specs.CoMapSpec),
    (CoFlatMapFunction, specs.CoFlatMapSpec),
    (CoProcessFunction, specs.CoProcessSpec),
    (KeyedCoProcessFunction, specs.KeyedCoProcessSpec),
    (BroadcastProcessFunction, specs.BroadcastProcessSpec),
    (KeyedBroadcastProcessFunction, specs.KeyedBroadcastProcessSpec),
)


def spec_of(
    function: Any, descriptors: Sequence[MapStateDescriptor[Any, Any]] = (), *, is_keyed: bool
) -> specs.OperatorSpec:
    """The spec of the operator that runs a function, or the spec itself if it is one.

    Raises:
        TypeError: The function is of no kind that has an operator of its own.
    """
    if isinstance(function, specs.OperatorSpec):
        return function
    if isinstance(function, MapPartitionFunction):
        return specs.FullWindowSpec(function) if is_keyed else specs.MapPartitionSpec(function)
    for kind, spec in _SPECS:
        if isinstance(function, kind):
            arguments = (function, tuple(descriptors)) if descriptors else (function,)
            return spec(*arguments)
    kinds = ", ".join(kind.__name__ for kind, _ in _SPECS)
    raise TypeError(
        f"{type(function).__name__} cannot be run by a harness, which takes {kinds}; for other "
        f"operators pass the operator's spec, such as WindowSpec(assigner, trigger, reduce=...)"
    )
