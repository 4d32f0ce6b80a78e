"""Operators that call a function with many records: those of one turn, or all records of a subtask or key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.operators.operator import OperatorContext, Output, UserFunctionOperator
from opchain.runtime.operators.pending_batch import PendingBatch
from opchain.runtime.state.keyed.keyed_backend import VOID, KeyedStateBackend
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from opchain.runtime.program.operator_specs import MapBatchesSpec
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService

    EmitBatch = Callable[[Sequence[Any], Iterable[int | None]], None]


class MapBatchesOperator(UserFunctionOperator):
    """Calls a function with the records of a turn. Watermarks and other elements are emitted after its results.

    Attributes:
        pending: The collected records. The chain flushes them at the end of each batch.
        emit_batch: The downstream operators as generated code, if there is any.
    """

    method = "map_batches"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: MapBatchesSpec = program.spec  # type: ignore[assignment]
        self.spec = spec
        self.where = program.label
        self.pending = PendingBatch(self, carries_timestamps=program.timestamps, select_key=None)
        self.emit_batch: EmitBatch | None = None
        self.to_batch: Callable[[list[Any]], Any] = _unchanged
        self.from_batch = self._records_of_list
        if spec.batch_format == "arrow":
            from opchain.runtime.columnar.encode import RecordEncoder  # noqa: PLC0415 - few need columns

            assert spec.record_type is not None
            self.to_batch = RecordEncoder(spec.record_type, self.where).batch
            self.from_batch = self._records_of_columns

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Keeps the record until the batch is complete."""
        self.pending.append(value, timestamp)

    def process_watermark(self, watermark: int) -> None:
        """Emits the batch, then the watermark."""
        self.pending.flush()
        super().process_watermark(watermark)

    def process_status(self, is_idle: bool) -> None:
        """See `process_watermark`."""
        self.pending.flush()
        super().process_status(is_idle)

    def process_latency_marker(self, marker: Any) -> None:
        """See `process_watermark`."""
        self.pending.flush()
        super().process_latency_marker(marker)

    def finish(self) -> None:
        """See `process_watermark`."""
        self.pending.flush()

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None = None,  # noqa: ARG002 - what exchanges get at the same place
    ) -> None:
        """Emits the results of the function for a batch.

        Raises:
            TypeError: The function returned something other than batches.
            ValueError: With one_to_one, the number of results is wrong.
        """
        given = list(values)
        times = list(timestamps) if timestamps is not None and self.spec.one_to_one else None
        done = 0
        for batch in self._given(self.call(self.to_batch(given))):
            results = self.from_batch(batch)
            first, done = done, done + len(results)
            if self.spec.one_to_one and done > len(given):
                break
            self._emit(results, repeat(None) if times is None else times[first:done])
        if self.spec.one_to_one and done != len(given):
            made = f"at least {done}" if done > len(given) else done
            raise ValueError(
                f"{self.where} returned {made} for a batch of {len(given)} records, but "
                f"one_to_one=True requires one result per record: remove one_to_one, or return "
                f"as many"
            )

    def _emit(self, results: Sequence[Any], timestamps: Iterable[int | None]) -> None:
        if self.emit_batch is not None:
            self.records_out += len(results)
            self.emit_batch(results, timestamps)
            return
        collect = self.output.collect
        for result, timestamp in zip(results, timestamps):  # noqa: B905 - repeat() has no end
            collect(result, timestamp)

    def _given(self, result: Any) -> Iterable[Any]:
        """The batches of a call, which returns one or yields several."""
        if result is None:
            return ()
        return result if isinstance(result, Iterator) else (result,)

    def _records_of_list(self, batch: Any) -> Sequence[Any]:
        if isinstance(batch, (list, tuple)):
            return batch
        raise TypeError(
            f"{self.where} returned {short_repr(batch)} of type {type(batch).__name__}; a function of "
            "map_batches returns a list of records, or yields lists"
        )

    def _records_of_columns(self, batch: Any) -> Sequence[Any]:
        from opchain.runtime.columnar.decode import records_of, values_of  # noqa: PLC0415
        from opchain.runtime.columnar.spark_types import pyarrow  # noqa: PLC0415 - as above

        arrow = pyarrow()
        if isinstance(batch, arrow.Table):
            return [row for part in batch.to_batches() for row in self._records_of_columns(part)]
        if not isinstance(batch, arrow.RecordBatch):
            raise TypeError(
                f"{self.where} returned {short_repr(batch)} of type {type(batch).__name__}; a function of "
                "map_batches with batch_format='arrow' returns a pyarrow.RecordBatch or Table, or yields them"
            )
        if not self.spec.gives_values:
            return records_of(batch)
        if batch.num_columns != 1:
            raise ValueError(
                f"{self.where} returned the columns {batch.schema.names}, but its output type is not "
                f"a row type, so one column is expected"
            )
        return values_of(batch.column(0))


def _unchanged(records: list[Any]) -> Any:
    return records


CONTENTS = "window-contents"
"""The name of the table with the records of each key, as Flink names window state."""


class MapPartitionOperator(UserFunctionOperator):
    """All records of the subtask. Flink: `MapPartitionOperator`.

    Results have no timestamp. Flink runs the function in another thread while records arrive. Here all records are
    kept, and the function runs at the end. The results are the same.
    """

    method = "map_partition"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.values: list[Any] = []

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Keeps the record."""
        self.values.append(value)

    def finish(self) -> None:
        """Emits the results of the function for all records, even if there are none."""
        values, self.values = self.values, []
        collect = self.output.collect
        for result in self.call(iter(values)) or ():
            collect(result, None)


class FullWindowOperator(UserFunctionOperator):
    """All records of each key, key by key in the order in which they came.

    Flink: a window operator over GlobalWindows that fires at the end of the stream. Results have the largest
    timestamp, which is the last timestamp of this window.
    """

    method = "map_partition"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.select_key = program.key_selector()
        self.backend: KeyedStateBackend = context.keyed_state
        self.contents = self.backend.table(CONTENTS)
        self.timers: InternalTimerService

    def open(self) -> None:
        """Opens the function."""
        self.timers = self.context.timers.service("window-timers", self)
        super().open()

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Adds the record to the records of its key."""
        self.backend.set_current_key(self.select_key(value))
        values = self.contents.get(self.backend.state_key)
        if values is None:
            self.contents[self.backend.state_key] = [value]
            self.timers.register_event_time_timer(VOID, MAX_LONG_VALUE)
        else:
            values.append(value)

    def on_event_time(self, time: int, _namespace: Any) -> None:
        """Emits the results of the function for the current key's records, at the end of event time."""
        values = self.contents.pop(self.backend.state_key)
        collect = self.output.collect
        for result in self.call(iter(values)) or ():
            collect(result, time)

    def on_processing_time(self, time: int, namespace: Any) -> None:
        """Never called: there are no processing-time timers."""
