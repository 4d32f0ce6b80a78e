"""Side outputs: additional output streams of an operator, identified by tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.type_variables import T
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.types.type_variables import OUT_co

    Emitted: TypeAlias = Iterable[OUT_co | tuple["OutputTag[Any]", Any]] | None
    """The results of a process function: records, and `tag, value` pairs for side outputs."""


DEFAULT_OUTPUT_TAG = ""
"""The id of the main output. PyFlink: pyflink.common.constants."""


class OutputTag(Generic[T]):
    """Identifies a side output. A function emits to it with `yield tag, value`.

    Tags with the same id are equal, as in Flink. So a tag can be created again to read the side output:
    `stream.get_side_output(OutputTag("late"))`.

    Args:
        tag_id: The name; not empty.
        type_info: The type of the records, a list of field types for rows, or None for any object.

    Raises:
        ValueError: The name is empty.
        TypeError: The type is invalid.
    """

    __slots__ = ("_tag_id", "_type_info")

    def __init__(
        self,
        tag_id: str,
        type_info: TypeInformation[T] | Sequence[TypeInformation[Any]] | None = None,
    ) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError(f"the id of an OutputTag is {tag_id!r}; it must be a non-empty string")
        self._tag_id = tag_id
        self._type_info = _type_of(tag_id, type_info)

    @property
    def tag_id(self) -> str:
        """The name of the side output."""
        return self._tag_id

    @property
    def type_info(self) -> TypeInformation[Any]:
        """The type of the side output's records."""
        return self._type_info

    def __eq__(self, other: object) -> bool:
        return self._tag_id == other._tag_id if isinstance(other, OutputTag) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self._tag_id!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return OutputTag, (self._tag_id, self._type_info)


def _type_of(tag_id: str, type_info: object) -> TypeInformation[Any]:
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(type_info, list):
        return RowTypeInfo(type_info)
    if isinstance(type_info, TypeInformation):
        return type_info
    raise TypeError(
        f"the type of OutputTag {tag_id!r} is {type_info!r}; it must be a TypeInformation, a list of "
        "them, or None"
    )
