"""Policies for text that is not a record: fail the job, count it, or send it to a side output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from opchain.runtime.errors import StreamError, short_repr
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from opchain.runtime.functions.source import SourceReaderContext

    OnMalformed: TypeAlias = Literal["fail", "skip"] | OutputTag["MalformedRecord"]

FAIL, SKIP = "fail", "skip"

MALFORMED_COUNTER = "numRecordsInErrors"
"""The metric of the source that counts what was skipped or sent to a side output, as in Flink."""


class MalformedRecordError(StreamError, ValueError):
    """A file holds something that is not a record of its format.

    What to do: Correct the file at the named place, or call `on_malformed` on the source's builder to skip or to collect
    such records.
    """


class MalformedRecord(NamedTuple):
    """Text that is not a record: what a side output of malformed records gets.

    `place` is the position in the file: "byte 120", "line 7", "block at byte 4096".
    """

    path: str
    place: str
    text: str
    reason: str


def checked_policy(policy: object) -> OnMalformed:
    """What `on_malformed` takes.

    Raises:
        ValueError: It is none of these.
    """
    if policy == FAIL:
        return "fail"
    if policy == SKIP:
        return "skip"
    if isinstance(policy, OutputTag):
        return policy
    raise ValueError(f"on_malformed got {policy!r}; it takes 'fail', 'skip' or an OutputTag")


@dataclass
class MalformedRecords:
    """Takes what a format can't read, and does as the user said; the context comes with the task.

    While `is_muted`, nothing is done: the records were taken before.
    """

    policy: OnMalformed = "fail"
    context: SourceReaderContext | None = field(default=None, compare=False)
    is_muted: bool = field(default=False, compare=False)

    def take(self, record: MalformedRecord, cause: BaseException, count: int = 1) -> None:
        """Fails, counts, or emits; `count` says how many records are lost with it.

        Raises:
            MalformedRecordError: The policy is to fail.
        """
        if self.is_muted:
            return
        if self.policy == FAIL:
            raise MalformedRecordError(
                f"'{record.path}', {record.place}: {short_repr(record.text)} is malformed "
                f"({record.reason}); correct it, or call .on_malformed('skip') or "
                f".on_malformed(OutputTag(...)) on the source's builder"
            ) from cause
        if self.context is None:
            return
        self.count(count)
        if isinstance(self.policy, OutputTag):
            self.context.emit_to(self.policy, record)

    def count(self, count: int = 1) -> None:
        """Counts what is wrong, in the source's metric."""
        if self.context is not None and not self.is_muted:
            self.context.metric_group().counter(MALFORMED_COUNTER).inc(count)
