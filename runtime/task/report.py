"""What a task tells the driver, on the data path: so it arrives once, from the attempt that counts.

Every task ends with one TaskReport. It travels like any buffer, to the target DRIVER, and Spark's
retries decide which attempt's report the driver sees: no accumulators, nothing counted twice.

Acknowledgements (committables, the report) go apart from records (of collecting and printing sinks): the
driver reads the former at once, and the latter when the program asks for them.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.task.buffer import Buffer
from opchain.runtime.task.record_pickle import dump_records, unpicklable_record
from opchain.runtime.task.vertex_program import DRIVER
from opchain.runtime.task.wire import PayloadKind, frame, unframe

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.metrics.task_metrics import TaskMetrics

ITEMS_PER_BUFFER = 1024

RECORD_KINDS = frozenset({"collect", "print"})
"""Items whose value is a list of records; those of one kind and place travel together."""

RecordKey = tuple[str, Any]
"""The kind of records and where they belong: a sink's uid, or whether lines go to stderr."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The last word of a task: its numbers. `attempt` counts Spark's retries of it in a bounded job, from 0."""

    task: int
    attempt_id: str
    metrics: TaskMetrics
    attempt: int = 0


class DriverChannel:
    """The sending end of a task's way to the driver; the report comes last."""

    def __init__(self, task: int, emit: Callable[[Buffer], None]) -> None:
        self._task = task
        self._emit = emit
        self._sequence = 0
        self._items: list[Any] = []
        self._records: dict[RecordKey, list[Any]] = {}

    def begin_epoch(self) -> None:
        """Counts what is sent anew."""
        self._sequence = 0

    def acknowledge(self, item: tuple[str, Any, Any], size: int = 1) -> None:
        """Sends (kind, where, value): a committable, a state handle, a list of collected records.

        `size` says how many records the value holds.

        Raises:
            UnpicklableRecordError: A record cannot travel, maybe one of an earlier call.
        """
        del size  # a list knows it
        kind, where, value = item
        if kind in RECORD_KINDS:
            records = self._records.setdefault((kind, where), [])
            records += value
            if len(records) >= ITEMS_PER_BUFFER:
                self._send_records(kind, where)
        else:
            self._items.append(item)
            if len(self._items) >= ITEMS_PER_BUFFER:
                self._send_items()

    def flush(self) -> None:
        """Sends what is waiting."""
        for kind, where in list(self._records):
            self._send_records(kind, where)
        if self._items:
            self._send_items()

    def finish(self, report: TaskReport) -> None:
        """Sends the report: after it nothing follows."""
        self._items.append(report)
        self.flush()

    def _send_records(self, kind: str, where: Any) -> None:
        records = self._records.pop((kind, where))
        try:
            body = dump_records(records)
        except MemoryError:
            raise
        except Exception as error:
            unpicklable = unpicklable_record(records)
            if unpicklable is None:
                raise
            raise unpicklable from error
        self._send(PayloadKind.RECORDS, pickle.dumps((kind, where), protocol=5) + body)

    def _send_items(self) -> None:
        self._send(PayloadKind.REPORT, dump_records(self._items))
        self._items = []

    def _send(self, kind: PayloadKind, body: bytes) -> None:
        self._emit(Buffer(DRIVER, 0, self._task, self._sequence, frame(kind, body)))
        self._sequence += 1


def read_items(buffer: Buffer) -> list[Any]:
    """The acknowledgements in a buffer; the report is the last of the last."""
    items: list[Any] = pickle.loads(unframe(PayloadKind.REPORT, buffer.payload))
    return items


def record_key(buffer: Buffer) -> RecordKey:
    """What records a buffer holds; they stay unread."""
    kind, where = pickle.loads(unframe(PayloadKind.RECORDS, buffer.payload))
    return kind, where


def read_records(buffer: Buffer) -> list[Any]:
    """The records in a buffer."""
    file = io.BytesIO(unframe(PayloadKind.RECORDS, buffer.payload))
    pickle.load(file)
    records: list[Any] = pickle.load(file)
    return records
