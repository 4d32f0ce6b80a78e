"""An operator with any number of inputs, which Flink keeps internal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked_function, checked_stream, type_of
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.runtime.functions.record_functions import FlatMapFunction
from opchain.runtime.program.operator_specs import MultiInputSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.compiler.dsl.argument_checks import DeclaredType

R = TypeVar("R")


def multiple_input(
    streams: Sequence[DataStream[Any]],
    functions: Sequence[FlatMapFunction[Any, R] | Callable[[Any], Iterable[R]]],
    output_type: DeclaredType = None,
) -> DataStream[R]:
    """Flat-maps each stream with its own function, all in one operator.

    Sources in front of it run inside its vertex (HEAD_WITH_SOURCES), which no operator with several
    inputs gets otherwise.

    Flink: `MultipleInputTransformation`, and `KeyedMultipleInputTransformation` where all streams
    are keyed; made by its table planner alone.
    """
    call = "multiple_input"
    if not streams or len(streams) != len(functions):
        raise ValueError(
            f"{at_call(call)} got {len(streams)} streams and {len(functions)} functions; "
            "it needs at least one stream, and one function per stream"
        )
    first = streams[0]
    for stream, function in zip(streams, functions):  # noqa: B905 - checked above
        checked_stream(stream, DataStream, first, call)
        checked_function(function, FlatMapFunction, call, callables=True)
    environment = first.get_execution_environment()
    keys = [stream.state_key for stream in streams]
    transformation = OperatorTransformation(
        environment.next_transformation_id(),
        MultiInputSpec.default_name,
        [stream.transformation for stream in streams],
        spec=MultiInputSpec(tuple(functions)),  # type: ignore[arg-type]  # FlatMapFunctions too
        parallelism=environment.get_parallelism(),
        key_bys=keys if None not in keys else (),
        call_site=user_call_site(),
        output_type=type_of(output_type, call),
    )
    transformation.chaining_strategy = ChainingStrategy.HEAD_WITH_SOURCES
    environment.add_operator(transformation)
    return DataStream(environment, transformation)
