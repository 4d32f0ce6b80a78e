"""Policies for malformed records of files: fail the job, skip and count them, or send them to a side output."""

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
"""The source's metric for records that were skipped or sent to a side output. The name is Flink's."""


class MalformedRecordError(StreamError, ValueError):
    """A record of a file does not have the file's format.

    What to do: Correct the file at the named place, or call `on_malformed` on the source's builder to skip or to
    collect such records.
    """


class MalformedRecord(NamedTuple):
    """A malformed record, as sent to a side output.

    `place` is the position in the file: "byte 120", "line 7", "block at byte 4096".
    """

    path: str
    place: str
    text: str
    reason: str


def checked_policy(policy: object) -> OnMalformed:
    """Returns the argument of `on_malformed` if it is a valid policy.

    Raises:
        ValueError: The policy is invalid.
    """
    if policy == FAIL:
        return "fail"
    if policy == SKIP:
        return "skip"
    if isinstance(policy, OutputTag):
        return policy
    raise ValueError(f"on_malformed got {policy!r}; it takes 'fail', 'skip' or an OutputTag")


def not_decoded(place: str, text: str, advice: str) -> str:
    """A warning of a text with bytes that became U+FFFD."""
    return f"{place}: {short_repr(text)} has bytes that cannot be decoded, and they became U+FFFD. {advice}"


@dataclass
class MalformedRecords:
    """Applies the user's policy to malformed records. The task sets the context.

    While `is_muted`, records are ignored, because they were reported before.
    """

    policy: OnMalformed = "fail"
    context: SourceReaderContext | None = field(default=None, compare=False)
    is_muted: bool = field(default=False, compare=False)

    def take(self, record: MalformedRecord, cause: BaseException, count: int = 1) -> None:
        """Fails, counts, or emits the record. `count` is the number of records that are lost with it.

        Raises:
            MalformedRecordError: The policy is "fail".
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

    def replaced(self, place: str, text: str, advice: str) -> None:
        """Counts a text with bytes that became U+FFFD, and warns of the first one of a job."""
        self.count()
        if self.context is not None:
            self.context.warn(not_decoded(place, text, advice))

    def count(self, count: int = 1) -> None:
        """Adds to the source's metric of malformed records."""
        if self.context is not None and not self.is_muted:
            self.context.metric_group().counter(MALFORMED_COUNTER).inc(count)
