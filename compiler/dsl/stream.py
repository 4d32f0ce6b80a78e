"""What every stream of the DSL is: an environment, and the transformation it stands for."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from opchain.compiler.dsl.argument_checks import declared_type, type_of
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.runtime.errors import StreamError
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.compiler.graph.partitioner import KeyBy
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.execution_config import ExecutionConfig
    from opchain.runtime.program.operator_specs import OperatorSpec
    from opchain.runtime.types.type_information import TypeInformation


class Stream(Generic[T]):
    """A stream of records of type T.

    Made by the DSL's methods, never by the user. `transformation` is what the compiler reads.
    """

    def __init__(
        self, environment: StreamExecutionEnvironment, transformation: Transformation
    ) -> None:
        self._environment = environment
        self.transformation = transformation

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of '{self.transformation.name}' "
            f"({self.transformation.call_site})>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: where it was made, its type, and a picture of the program up to here."""
        from opchain.compiler.plan.page.render import (  # noqa: PLC0415 - notebooks only
            program_cell,
            program_page,
        )

        text = html.escape(f"{self!r}, {self.get_type()!r}")
        program = self._environment.program()
        program = replace(program, transformations=(self.transformation,))
        try:
            return f"<div>{text}</div>{program_cell(program, lambda: program_page(program))}"
        except StreamError as error:
            return f"<div>{text}</div><div>{html.escape(str(error))}</div>"

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution config, not a copy."""
        return self._environment.get_config()

    def get_id(self) -> int:
        """The number of the transformation; ids count from 1 per environment."""
        return self.transformation.id

    def get_parallelism(self) -> int:
        """How many subtasks emit the stream."""
        return self.transformation.parallelism

    def get_type(self) -> TypeInformation[Any]:
        """The declared type of the records, or pickled bytes where none was declared.

        Types are needed nowhere: records of a stream without one may be any Python objects.
        """
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - plans need no types

        return declared_type(self.transformation) or Types.PICKLED_BYTE_ARRAY()

    @property
    def state_key(self) -> KeyBy | None:
        """The key that scopes the state of an operator on this stream; None without key."""
        return None

    def transform(
        self,
        spec: OperatorSpec,
        output_type: DeclaredType = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        parallelism_configured: bool = False,
        is_keyed: bool = True,
    ) -> DataStream[Any]:
        """Adds a one-input operator; what all other methods end in.

        On a keyed stream the operator has the stream's key, unless `is_keyed` says that it takes no
        notice of it.

        Flink: `DataStream.transform` and `KeyedStream.doTransform`.
        """
        environment = self._environment
        transformation = OperatorTransformation(
            environment.next_transformation_id(),
            spec.default_name if name is None else name,
            (self.transformation,),
            spec=spec,
            parallelism=environment.get_parallelism() if parallelism is None else parallelism,
            parallelism_configured=parallelism_configured,
            key_bys=(self.state_key if is_keyed else None,),
            call_site=user_call_site(),
            output_type=type_of(output_type, spec.kind),
        )
        environment.add_operator(transformation)
        return self._stream_of(transformation)

    def _stream_of(self, transformation: Transformation) -> DataStream[Any]:
        from opchain.compiler.dsl.data_stream import DataStream  # noqa: PLC0415 - it is a Stream

        return DataStream(self._environment, transformation)
