"""Record types as a program may declare them: taken everywhere PyFlink takes them, needed nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

from opchain.compiler.dsl.argument_checks import at_call
from opchain.compiler.graph.transformation import (
    OperatorTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from opchain.compiler.graph.transformation import Transformation
    from opchain.runtime.types.type_information import TypeInformation

DeclaredType: TypeAlias = Union["TypeInformation[Any]", "list[TypeInformation[Any]]", None]
"""A type, a list of field types (which means rows), or nothing."""


def type_of(declared: Any, call: str) -> TypeInformation[Any] | None:
    """The type that was declared; a list of types becomes a row's.

    Raises:
        TypeError: It is neither.
    """
    if declared is None:
        return None
    # Imported late: a program without declared types never loads them.
    from opchain.runtime.types.type_information import TypeInformation  # noqa: PLC0415

    if isinstance(declared, TypeInformation):
        return declared
    if isinstance(declared, list) and all(isinstance(item, TypeInformation) for item in declared):
        from opchain.runtime.types.types import Types  # noqa: PLC0415

        return Types.ROW(declared)
    raise TypeError(
        f"{at_call(call)} got the type {declared!r}; it takes a TypeInformation such as "
        "Types.STRING(), or a list of them for rows, or nothing"
    )


def declared_type(transformation: Transformation) -> TypeInformation[Any] | None:
    """The type that was declared for the records of a transformation."""
    while isinstance(transformation, (PartitionTransformation, UnionTransformation)):
        transformation = transformation.inputs[0]
    if isinstance(transformation, SideOutputTransformation):
        tagged: TypeInformation[Any] | None = transformation.tag.type_info
        return tagged
    if isinstance(transformation, OperatorTransformation):
        declared: TypeInformation[Any] | None = transformation.output_type
        return declared
    return None
