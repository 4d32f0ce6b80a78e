"""Things that know the type of the records they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.types.type_information import TypeInformation


class ResultTypeQueryable(ABC):
    """Mixed into sources and formats that name their records' type."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records."""
