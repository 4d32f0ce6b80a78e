"""Slot sharing groups: which operators may share a slot, and the resources that a slot needs."""

from __future__ import annotations

from dataclasses import dataclass

from opchain.runtime.configuration.options import MemorySize
from opchain.runtime.errors import short_repr

_NOTHING = MemorySize(0)


@dataclass(frozen=True)
class SlotSharingGroup:
    """A named group of operators, with the resources of one of its slots. Created by `builder`.

    A group has no resources, or at least CPU cores and task heap memory; other memory sizes default to 0. On Spark, a
    group with resources becomes a ResourceProfile of its stages.

    >>> SlotSharingGroup.builder("gpu").set_cpu_cores(1).set_task_heap_memory_mb(512).build().get_name()
    'gpu'
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: tuple[tuple[str, float], ...] = ()

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Returns a builder for a group with this name."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """The CPU cores of a slot. None if the group has no resources."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """The heap memory of a slot. None if the group has no resources."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """The off-heap memory of a slot. None if the group has no resources."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Flink's managed memory of a slot. None if the group has no resources."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Other resources of a slot by name, such as `gpu`."""
        return dict(self.external_resources)

    class Builder:
        """Builds a group. All methods but `build` return the builder."""

        def __init__(self, name: str) -> None:
            if not isinstance(name, str):
                raise TypeError(
                    f"the name of a slot sharing group is {short_repr(name)}, not a str"
                )
            self._name = name
            self._cpu_cores: float | None = None
            self._task_heap_memory: MemorySize | None = None
            self._task_off_heap_memory: MemorySize | None = None
            self._managed_memory: MemorySize | None = None
            self._external_resources: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Sets the CPU cores of a slot.

            Raises:
                ValueError: The number is not greater than 0.
            """
            if cpu_cores <= 0:
                raise self._refused(f"{cpu_cores} CPU cores, but must ask for more than 0")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Sets the heap memory of a slot.

            Raises:
                ValueError: The size is not greater than 0.
            """
            if task_heap_memory <= _NOTHING:
                raise self._refused(
                    f"{task_heap_memory} of task heap memory, but must ask for more than 0"
                )
            self._task_heap_memory = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Sets the heap memory of a slot in MiB (1,048,576 bytes). It must be greater than 0."""
            if task_heap_memory_mb <= 0:
                raise self._refused(
                    f"{task_heap_memory_mb} mb of task heap memory, but must ask for more than 0"
                )
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(
            self, task_off_heap_memory: MemorySize
        ) -> SlotSharingGroup.Builder:
            """Sets the off-heap memory of a slot."""
            self._task_off_heap_memory = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(
            self, task_off_heap_memory_mb: int
        ) -> SlotSharingGroup.Builder:
            """Sets the off-heap memory of a slot in MiB (1,048,576 bytes)."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Sets Flink's managed memory of a slot."""
            self._managed_memory = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Sets Flink's managed memory of a slot in MiB (1,048,576 bytes)."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Sets how much of another resource a slot needs, such as 1 of `gpu`. The last call for a name wins.

            Raises:
                ValueError: The amount is negative.
            """
            if value < 0:
                raise self._refused(
                    f"{value} of external resource '{name}'; it must not be negative"
                )
            self._external_resources[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """Returns the group.

            Raises:
                ValueError: Resources are set, but not both CPU cores and task heap memory.
            """
            memories = (self._task_off_heap_memory, self._managed_memory)
            required = (self._cpu_cores, self._task_heap_memory)
            if not any((*memories, *required, self._external_resources)):
                return SlotSharingGroup(self._name)
            if None in required:
                raise self._refused(
                    "resources, but not for both CPU cores and task heap memory; set both "
                    "(set_cpu_cores, set_task_heap_memory), or no resources at all"
                )
            return SlotSharingGroup(
                self._name,
                self._cpu_cores,
                self._task_heap_memory,
                self._task_off_heap_memory or _NOTHING,
                self._managed_memory or _NOTHING,
                tuple(sorted(self._external_resources.items())),
            )

        def _refused(self, what: str) -> ValueError:
            return ValueError(f"slot sharing group '{self._name}' asks for {what}")
