"""What was drawn so far: the registered transformations and the counter of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.compiler.graph.transformation import Transformation


class DrawnProgram:
    """The list that the DSL's methods add to."""

    def __init__(self) -> None:
        self._transformations: list[Transformation] = []
        self._last_id = 0

    def add_operator(self, transformation: Transformation) -> None:
        """Registers a transformation: it is part of the program, with all that it reads.

        Flink: `StreamExecutionEnvironment.addOperator`; the DSL's methods call it.
        """
        self._transformations.append(transformation)

    def get_transformations(self) -> list[Transformation]:
        """The registered operators and sinks in the order of the calls; a copy."""
        return list(self._transformations)

    def next_transformation_id(self) -> int:
        """A new id; Flink counts them per JVM, here they count per environment, from 1."""
        self._last_id += 1
        return self._last_id
