"""Functions over pairs and groups of two streams. Flink has them in Java; results are yielded here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN1_contra, IN2_contra, OUT_co

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.types.output_tag import Emitted


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes one record of each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """The pair's record."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes any number of records of each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """Yields the pair's records."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Evaluates what two streams have in one window under one key; one side may be empty."""

    @abstractmethod
    def co_group(
        self, first: Iterable[IN1_contra], second: Iterable[IN2_contra]
    ) -> Iterable[OUT_co] | None:
        """Yields the group's records."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes each pair of an interval join."""

    class Context(ABC):
        """The times of the pair, in milliseconds."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The event time of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The event time of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The event time of what is emitted: the later of the two."""

    @abstractmethod
    def process_element(
        self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields the pair's records; `yield tag, value` goes to a side output."""
