"""An operator with two inputs, added to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.declared_types import type_of
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import OperatorTransformation

if TYPE_CHECKING:
    from opchain.compiler.dsl.declared_types import DeclaredType
    from opchain.compiler.dsl.stream import Stream
    from opchain.runtime.operators.specs import OperatorSpec


def with_two_inputs(
    spec: OperatorSpec, first: Stream[Any], second: Stream[Any], output_type: DeclaredType
) -> DataStream[Any]:
    """The result of an operator that reads both streams; each input's state key is its stream's.

    Flink: `ConnectedStreams.transform`.
    """
    environment = first.get_execution_environment()
    transformation = OperatorTransformation(
        environment.next_transformation_id(),
        spec.default_name,
        (first.transformation, second.transformation),
        spec=spec,
        parallelism=environment.get_parallelism(),
        key_bys=(first.state_key, second.state_key),
        call_site=user_call_site(),
        output_type=type_of(output_type, spec.kind),
    )
    environment.add_operator(transformation)
    return DataStream(environment, transformation)
