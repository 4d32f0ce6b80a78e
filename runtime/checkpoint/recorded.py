"""What a checkpoint keeps of its epoch beside the state, where epochs are recorded: enough to run it again."""

from __future__ import annotations

from dataclasses import dataclass

from opchain.runtime.checkpoint.storage import StoredFile  # noqa: TC001 - its fields' types are read at run time


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """What a task sent somewhere: how many records, and a digest of them in their order.

    `name` says where to: `exchange 0` by the number of the output, or `sink 3` by that of the operator.
    """

    name: str
    records: int
    digest: str


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """What a task read, if it is a source's, and sent."""

    input: StoredFile | None = None
    outputs: tuple[RecordedOutput, ...] = ()
