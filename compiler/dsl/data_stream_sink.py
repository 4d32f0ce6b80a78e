"""DataStreamSink: the end of a stream, and the attributes it may be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from opchain.compiler.dsl.argument_checks import checked
from opchain.compiler.dsl.operator_attributes import set_uid
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.slot_sharing_group import SlotSharingGroup


class DataStreamSink(Generic[T]):
    """A sink that is part of the program; each setter returns it.

    What is set on a sink of `sink_to` holds for its writer and its committer.
    """

    def __init__(
        self, environment: StreamExecutionEnvironment, transformation: Transformation
    ) -> None:
        self._environment = environment
        self.transformation = transformation

    def __repr__(self) -> str:
        return f"<DataStreamSink '{self.transformation.name}' ({self.transformation.call_site})>"

    def name(self, name: str) -> DataStreamSink[T]:
        """Names the sink, in the plan, the logs and the metrics."""
        self.transformation.name = checked(name, str, "name", "the name")
        return self

    def uid(self, uid: str) -> DataStreamSink[T]:
        """Fixes the sink's operator id, under which its state is found again."""
        set_uid(self.transformation, uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStreamSink[T]:
        """Gives the id under which a savepoint made elsewhere knows the sink: 32 hex digits.

        Raises:
            GraphError: The sink is one of `sink_to`, which becomes several operators.
        """
        self.transformation.set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink[T]:
        """Sets how many subtasks write."""
        self.transformation.set_parallelism(parallelism)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> DataStreamSink[T]:
        """Sets the highest parallelism to rescale to. Flink has it in Java only."""
        self.transformation.set_max_parallelism(max_parallelism)
        return self

    def set_description(self, description: str) -> DataStreamSink[T]:
        """Describes the sink in plans, at more length than its name."""
        self.transformation.description = checked(
            description, str, "set_description", "the description"
        )
        return self

    def disable_chaining(self) -> DataStreamSink[T]:
        """Keeps the sink out of its input's vertex."""
        self.transformation.chaining_strategy = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> DataStreamSink[T]:
        """Puts the sink into a slot sharing group, by name or with its resources."""
        self.transformation.slot_sharing_group = self._environment.slot_sharing_group_name(
            slot_sharing_group
        )
        return self
