"""Rolling reduce on a keyed stream, and its batch form."""

from __future__ import annotations

from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.operators.operator import OperatorContext, Output, UserFunctionOperator
from opchain.runtime.operators.process import emit_where_read
from opchain.runtime.records.columns import Columns, Shape
from opchain.runtime.state.keys.key_identity import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from opchain.runtime.program.vertex_program import OperatorProgram

    EmitBatch = Callable[[Sequence[Any], Iterable[int | None]], None]


MAX_TIMESTAMP = 2**63 - 1
BATCH_SIZE = 4096


def stored_records(
    sums: dict[Any, Any], layout: tuple[Any, ...], shape: Shape | None = None
) -> Columns:
    """The records of a dictionary of keys and one stored field, or a tuple of stored fields.

    The records are tuples, or of another shape. The layout has, for each field, "key", "sum" (the value of the
    dictionary), the position in a value that is a tuple, or a constant in a tuple.

    >>> stored_records({"a": 1}, ("key", "sum", (None,)))
    Columns([('a', 1, None)])
    >>> stored_records({"a": (1, 2)}, (1, "key", 0))
    Columns([(2, 'a', 1)])
    """
    stored = [] if "sum" in layout else list(map(list, zip(*sums.values(), strict=True)))
    lists = [
        stored[field] if isinstance(field, int) else list(sums if field == "key" else sums.values())
        for field in layout
        if not isinstance(field, tuple)
    ]
    fields = tuple(field if isinstance(field, tuple) else () for field in layout)
    return Columns(lists, fields if shape is None else (*fields, shape.entry))


class ReduceOperator(UserFunctionOperator):
    """Emits the reduced value after every record. Flink: `StreamGroupedReduceOperator`.

    As in Flink, a result of None clears the state: the next record of the key is a first record again.

    A rich function may use keyed state, so the current key is set before it is called.
    """

    method = "reduce"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.table: MutableMapping[Any, Any] = context.keyed_state.table("_op_state")
        self.select_key = program.key_selector()
        identity = context.keyed_state.identity
        self.plain, self.identify = identity.plain, identity.of
        self._first = getattr(self.function, "first", None)
        self.set_key = context.keyed_state.set_current_key if has_lifecycle(self.function) else None
        self._key: Any = None
        self._sums: dict[Any, Any] = {}
        self._layout: tuple[Any, ...] = ()
        self._shape: Shape | None = None

    def keep_sums(self, layout: tuple[Any, ...], shape: Shape | None = None) -> dict[Any, Any]:
        """The dictionary from keys to the stored fields of records. See `stored_records` for the arguments."""
        self._layout, self._shape = layout, shape
        return self._sums

    def write_state(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """Writes the stored fields to the table."""
        self.write_sums()
        super().write_state(checkpoint_id, timestamp_ms)

    def write_sums(self) -> None:
        """Writes the stored fields to the table, as records."""
        sums = self._sums
        if sums:
            records = stored_records(sums, self._layout, self._shape)
            self.table.update(zip(sums, records, strict=True))
            sums.clear()

    @property
    def current_key(self) -> Any:
        """The key of the current record."""
        return self._key

    def reduced(self, value: Any) -> Any:
        """Reduces a record into its key's state, and returns the new state."""
        return self.folded(self.select_key(value), value)

    def folded(self, key: Any, value: Any) -> Any:
        """Reduces a value into a key's state, and returns the new state."""
        self._key = key
        self.write_sums()
        if self.set_key is not None:
            self.set_key(key)
        if key.__class__ not in self.plain:
            key = self.identify(key)
        previous = self.table.get(key)
        if previous is not None:
            value = self.call(previous, value)
        elif self._first is not None:
            value = self._first(value)
        self.table[key] = value
        return value

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the new state of the record's key."""
        emit_where_read(self.output, self.reduced(value), timestamp)


class BatchReduceOperator(ReduceOperator):
    """Emits each key's result once, when the input has ended. Flink: `BatchGroupedReduceOperator`.

    Results are in the order in which the keys first appeared, which is the same in every run. Results that are None are left
    out, as in Flink. The others have the largest timestamp (Flink: the end of the key's event time). Watermarks follow the
    results, as after the sorted input of Flink's batch mode. Records with timestamps are reduced in the order of time.

    Attributes:
        emit_batch: The downstream operators as generated code, if there is any.
    """

    ends_keys = False

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.sorts_batch_input = program.timestamps
        self.emit_batch: EmitBatch | None = None

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Reduces the record into its key's state, and emits nothing."""
        self.reduced(value)

    def _emit_batches(self, emit_batch: EmitBatch) -> None:
        if self.table:
            self.write_sums()
        for values in self._batches():
            self.records_out += len(values)
            emit_batch(values, repeat(MAX_TIMESTAMP))

    def _batches(self) -> Iterator[Sequence[Any]]:
        if self._sums:
            records = stored_records(self._sums, self._layout, self._shape)
            for first in range(0, len(records), BATCH_SIZE):
                yield records[first : first + BATCH_SIZE]
            return
        # The results may be on disk.
        results = (value for value in self.table.values() if value is not None)
        while values := list(islice(results, BATCH_SIZE)):
            yield values

    def process_watermark(self, watermark: int) -> None:
        """Keeps the watermark until the results are emitted."""
        self.current_watermark = watermark

    def finish(self) -> None:
        """Emits one result per key, and then the watermark; drops the state."""
        if self.emit_batch is None:
            for state_key, value in self.table.items():
                self._key = key_of(state_key)
                if value is not None:
                    emit_where_read(self.output, value, MAX_TIMESTAMP)
        else:
            self._key = None
            self._emit_batches(self.emit_batch)
        self.table.clear()
        self.output.emit_watermark(self.current_watermark)


class CombinedReduceOperator(BatchReduceOperator):
    """A batch reduce after senders that combine records. Its input consists of (key, value) pairs.

    No counterpart in Flink, which combines in its table runtime only.
    """

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Reduces the value of a pair into the state of its key."""
        del timestamp
        self.folded(*value)
