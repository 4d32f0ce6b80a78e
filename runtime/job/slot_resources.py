"""What one slot needs, as the program's slot sharing groups say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class SlotResources:
    """The resources of one slot.

    `memory_mebi_bytes` is the sum of Flink's task heap, off-heap and managed memory: here the code and the
    state of a task share its Python process. `external` has other resources by name, such as `gpu`.
    """

    group: str
    cpu_cores: float
    memory_mebi_bytes: int
    external: tuple[tuple[str, float], ...] = ()


def largest(slots: Iterable[SlotResources]) -> SlotResources | None:
    """The least that suffices for each of the slots; None where there are none."""
    found = list(slots)
    if not found:
        return None
    external: dict[str, float] = {}
    for slot in found:
        for name, amount in slot.external:
            external[name] = max(amount, external.get(name, 0.0))
    return SlotResources(
        ", ".join(dict.fromkeys(slot.group for slot in found)),
        max(slot.cpu_cores for slot in found),
        max(slot.memory_mebi_bytes for slot in found),
        tuple(sorted(external.items())),
    )
