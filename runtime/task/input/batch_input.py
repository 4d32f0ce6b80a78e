"""The input of batch mode: key by key, the records of each key by time. Broadcast records come first.

The whole input is read before the first keyed record is processed. Keys are processed by key group, and within a key
group in the order of their first records. The records of a key come by timestamp: first those without a timestamp,
and those of equal timestamps by input and order of arrival. When the next key begins, the timers of the previous key
fire and its state is dropped, unless the operator emits all its results at the end. Watermarks come after all records.
So a function sees what Flink shows it in batch mode: complete keys sorted by time, and no event time before a key ends.
(Flink orders keys by their serialized bytes.)

A chain whose results do not depend on the order of records gets them as they arrive. At the end, its operator puts the
keys into the order that sorting would have given.

Records wait in memory up to a limit. The others wait as pickles, which may be spilled to disk. The records of one key
group are in memory while its keys are processed.

Flink: `SortingDataInput`, `MultiInputSortingDataInput`; `BatchCoBroadcastWithKeyedOperator` and
`BatchCoBroadcastWithNonKeyedOperator`, which read the broadcast side first.
"""

from __future__ import annotations

import pickle
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import compress, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator
from opchain.runtime.records.arrays import entries_at, stable_order
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.columns import JSON, JSON_AND_KEY, Columns, Layout
from opchain.runtime.records.elements import Buffer, EndOfInput, RecordBatch, Watermark
from opchain.runtime.records.record_pickle import dump_flat, dump_records, looks_flat
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.mailbox.mailbox_processor import Controller
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.operator_chain import OperatorChain

    _Column = list[Any] | array[Any]

MEMORY_BYTES = 64 * 1024 * 1024
"""The bytes of input that wait unpickled: 230,000 tuples of three ints, or a million that were sent field by field."""

ITEM_BYTES, RECORD_BYTES, PLACE_BYTES = 64, 192, 24
"""Estimates: an item of a list, what a tuple takes beyond that, and where a record is put by sorting."""

BATCH_SIZE = 4096

_NO_TIME = array("q", [MIN_LONG_VALUE])

_CODES: dict[type, str] = {int: "q", float: "d"}


class KeySortedInput:
    """Feeds a chain whose head has a key on some input; records of the others come at once.

    Args:
        elements: What the task reads.
        chain: What is fed.
        memory_bytes: How much waits unpickled.
    """

    def __init__(
        self,
        elements: Iterable[InputElement],
        chain: OperatorChain,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._elements = iter(elements)
        self._chain = chain
        head = chain.head
        self._selectors = head.program.selectors
        inputs = head.context.task.vertex.inputs
        self._key_lists = {edge.input_number: edge.key_list for edge in inputs}
        backend = head.context.keyed_state
        if head.ends_keys:
            backend.end_each_key(head.context.timers.end_key)
        self._identity = backend.identity
        hasher = next(key.hasher for key in head.program.keys if key is not None)
        self._router = KeyRouter(backend.max_parallelism, 1, hasher)
        self._store = ArrivalStore(memory_bytes, self._router)
        # Only windows in memory can have their keys sorted afterwards.
        self._windows: AlignedWindowOperator | None = None
        self._takes_any_order = chain.takes_any_order
        if isinstance(head, AlignedWindowOperator) and type(backend) is HashMapKeyedStateBackend:
            self._windows = head
        self._keys_in_order: dict[Any, None] = {}
        self._is_unsorted = False
        self._layouts: dict[int, Layout] = {}
        self._watermarks: dict[int, int] = {}
        self._batches: Iterator[Arrivals] | None = None

    def process_next(self, controller: Controller) -> None:
        """Reads the next element, or feeds the next keys."""
        if self._batches is None:
            item = next(self._elements, None)
            if item is None:
                self._batches = self._store.batches()
            else:
                self._read(item)
            return
        arrivals = next(self._batches, None)
        if arrivals is not None:
            self._feed(arrivals)
        else:
            self._end()
            controller.all_actions_completed()

    def before_mail(self) -> None:
        """Nothing is left open: each step takes whole batches."""

    def close(self) -> None:
        """Drops what is waiting."""
        self._store.close()

    def _read(self, item: InputElement) -> None:
        number, _, element = item
        select = self._selectors[number]
        if isinstance(element, RecordBatch):
            if select is None:
                self._chain.process_batch(number, element.values, element.timestamps)
            else:
                self._keep(number, element, select)
        elif isinstance(element, Watermark):
            self._watermarks[number] = max(
                element.timestamp, self._watermarks.get(number, MIN_LONG_VALUE)
            )
        elif isinstance(element, EndOfInput) and select is None:
            self._chain.end_input(number)

    def _keep(self, number: int, batch: RecordBatch, select: Callable[[Any], Any]) -> None:
        values, key_list = batch.values, self._key_lists.get(number)
        if key_list is None or not isinstance(values, Columns):
            keys = [select(value) for value in values]
        else:
            keys = list(values.lists[key_list])
            if values.layout == JSON_AND_KEY:
                batch = replace(batch, values=Columns(values.lists[:key_list], JSON))
        if isinstance(batch.values, Columns) and batch.values.layout != JSON:
            self._layouts[number] = batch.values.layout
        if not self._identity.plain.issuperset(map(type, keys)):
            keys = list(map(self._identity.of, keys))
        if self._windows is not None and self._takes_any_order is not None:
            self._keys_in_order.update(dict.fromkeys(keys))
            if self._takes_any_order(batch.values):
                self._is_unsorted = True
                self._chain.process_batch(number, batch.values, batch.timestamps)
                return
        self._store.add(keys, Arrivals.of_batch(number, batch))

    def _feed(self, arrivals: Arrivals) -> None:
        """Processes records; inputs take turns, or each run of one input is a batch."""
        numbers, first = arrivals.numbers, 0
        inputs = dict.fromkeys(numbers)
        if (
            self._chain.turn_functions
            and len(inputs) > 1
            and self._chain.process_turns(
                numbers,
                {number: self._batch(number, arrivals.of_input(number)) for number in inputs},
            )
        ):
            return
        while first < len(numbers):
            number = numbers[first]
            end = first + len(numbers[first:]) - len(numbers[first:].lstrip(bytes([number])))
            self._chain.process_batch(number, *self._batch(number, arrivals, first, end))
            first = end

    def _batch(
        self, number: int, arrivals: Arrivals, first: int = 0, end: int | None = None
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        """The values and timestamps of a range, all of one input."""
        times: Sequence[int | None] = arrivals.columns[0][first:end]
        missing = times.count(MIN_LONG_VALUE)
        if missing == len(times):
            times = [None] * missing
        elif missing:
            times = [None if time == MIN_LONG_VALUE else time for time in times]
        values = arrivals.values(first, end)
        if number in self._layouts and not isinstance(values, Columns):
            # Another input has other fields; generated code reads those of this one.
            values = Columns.of_records(values, self._layouts[number])
        return values, times

    def _end(self) -> None:
        if self._is_unsorted and self._windows is not None:
            keys = list(self._keys_in_order)
            groups = self._router.key_groups_of(list(map(key_of, keys)))
            self._windows.sort_keys(entries_at(keys, stable_order(groups)))
        for number, watermark in sorted(self._watermarks.items()):
            self._chain.process_watermark(number, watermark)
        for number, select in enumerate(self._selectors):
            if select is not None:
                self._chain.end_input(number)


class Arrivals:
    """Records of some keys in lists: timestamps, and then the values. `numbers` are those of their inputs.

    Values are held field by field where all of them came as `Columns` of one layout, else in one list. A list of
    ints or floats is an array.
    """

    __slots__ = ("columns", "layout", "numbers")

    def __init__(
        self,
        numbers: bytes | bytearray = b"",
        columns: Sequence[_Column] = (),
        layout: Layout | None = None,
    ) -> None:
        self.numbers = bytearray(numbers)
        self.columns = list(columns)
        self.layout = layout

    @classmethod
    def of_batch(cls, number: int, batch: RecordBatch) -> Arrivals:
        """The records of a batch of input `number`."""
        values, times = batch.values, batch.timestamps
        if times is not None and None in times:
            times = [MIN_LONG_VALUE if time is None else time for time in times]
        packed = _NO_TIME * len(values) if times is None else _packed(times)
        lists = values.lists if isinstance(values, Columns) else (values,)
        layout = values.layout if isinstance(values, Columns) else None
        return cls(bytes([number]) * len(values), [packed, *map(_packed, lists)], layout)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def memory_bytes(self) -> int:
        """About how much memory is taken, without texts and the like."""
        fields = (8 if isinstance(column, array) else ITEM_BYTES for column in self.columns)
        are_records = self.layout is None and not isinstance(self.columns[-1], array)
        return len(self) * (sum(fields) + PLACE_BYTES + are_records * RECORD_BYTES)

    def values(self, first: int = 0, end: int | None = None) -> Sequence[Any]:
        """The records of a range."""
        lists = [list(entries[first:end]) for entries in self.columns[1:]]
        return lists[0] if self.layout is None else Columns(lists, self.layout)

    def extend(self, others: Arrivals) -> None:
        """Adds the records of others."""
        if not self.columns:
            self.numbers, self.columns, self.layout = others.numbers, others.columns, others.layout
            return
        if self.layout != others.layout:
            self._become_records()
            others._become_records()
        self.numbers += others.numbers
        for position, more in enumerate(others.columns):
            entries = self.columns[position]
            if type(entries) is array and getattr(more, "typecode", "") != entries.typecode:
                self.columns[position] = entries = list(entries)
            entries.extend(more)

    def _become_records(self) -> None:
        self.columns[1:] = [list(self.values(0, len(self)))]
        self.layout = None

    def taken(self, places: Sequence[int]) -> Arrivals:
        """The records at some places, one at least, in lists."""
        columns = [entries_at(entries, places) for entries in self.columns]
        return Arrivals(entries_at(self.numbers, places), columns, self.layout)  # type: ignore[arg-type]

    def of_input(self, number: int) -> Arrivals:
        """The records of one input, in lists."""
        is_of_input = self.numbers.translate(bytes(item == number for item in range(256)))
        columns = [list(compress(entries, is_of_input)) for entries in self.columns]
        return Arrivals(bytes([number]) * len(columns[0]), columns, self.layout)

    def in_order_of(self, ranks: Sequence[int]) -> Sequence[int]:
        """The places of the records in the order of their ranks, those of equal ranks by timestamp, then input."""
        numbers = self.numbers
        first = () if numbers.count(numbers[0]) == len(numbers) else (numbers,)
        return stable_order(*first, self.columns[0], ranks)


def _packed(entries: list[Any]) -> _Column:
    """The entries in 8 bytes each, where that is possible; always a list of its own."""
    kinds = set(map(type, entries))
    code = _CODES.get(kinds.pop()) if len(kinds) == 1 else None
    try:
        return list(entries) if code is None else array(code, entries)
    except OverflowError:
        return list(entries)


class _Numbered(dict[Any, int]):
    """Numbers keys in the order in which they first come."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


class ArrivalStore:
    """Records by key; those beyond a limit are pickled by key group, and may go to disk."""

    def __init__(self, memory_bytes: int, router: KeyRouter) -> None:
        self._limit = memory_bytes
        self._router = router
        self._sequence = 0
        self._pickles = BufferStore()
        self._begin()

    def _begin(self) -> None:
        self._arrivals = Arrivals()
        self._keys = _Numbered()
        self._keys_of_records = array("q")

    def add(self, keys: Iterable[Any], arrivals: Arrivals) -> None:
        """Takes records in, with their state keys."""
        self._keys_of_records.extend(map(self._keys.__getitem__, keys))
        self._arrivals.extend(arrivals)
        if self._arrivals.memory_bytes >= self._limit:
            self._pickle()

    def batches(self) -> Iterator[Arrivals]:
        """All records, once: by key group, then keys as they came, then by time; a key is in one batch."""
        for arrivals, ranks in self._sorted_keys():
            order = arrivals.in_order_of(ranks)
            in_order = entries_at(ranks, order)
            first = 0
            while first < len(order):
                last = min(first + BATCH_SIZE, len(order)) - 1
                end = bisect_right(in_order, in_order[last], last)
                yield arrivals.taken(order[first:end])
                first = end

    def close(self) -> None:
        """Drops everything."""
        self._begin()
        self._pickles.close()

    def _sorted_keys(self) -> Iterator[tuple[Arrivals, Sequence[int]]]:
        """Records of one key group or several in the order of key groups, and by record the rank of its key."""
        if self._sequence:
            self._pickle()
            yield from self._pickled_groups()
        elif self._keys:
            keys, places, arrivals = self._keys, self._keys_of_records, self._arrivals
            self._begin()
            yield arrivals, self._ranks(keys, places)[2]

    def _ranks(
        self, keys: _Numbered, of_records: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """By rank, the number of a key and its key group; and by record the rank of its key."""
        groups = self._router.key_groups_of(list(map(key_of, keys)))
        by_rank = stable_order(groups)
        rank_of = stable_order(by_rank)
        return by_rank, entries_at(groups, by_rank), entries_at(rank_of, of_records)

    def _pickle(self) -> None:
        """Puts what is in memory away: by key group, and within it key by key."""
        keys, arrivals = list(self._keys), self._arrivals
        if not keys:
            return
        by_rank, groups, ranks = self._ranks(self._keys, self._keys_of_records)
        self._begin()
        order = stable_order(ranks)
        in_order = entries_at(ranks, order)
        for group in sorted(set(groups)):
            low, high = bisect_left(groups, group), bisect_right(groups, group)
            first, end = bisect_left(in_order, low), bisect_left(in_order, high)
            of_group = arrivals.taken(order[first:end])
            held = (of_group.numbers, of_group.columns, of_group.layout)
            keys_of_group = [keys[number] for number in by_rank[low:high]]
            of_records = [rank - low for rank in in_order[first:end]]
            payload = _pickled((keys_of_group, of_records, held))
            self._pickles.add(Buffer(0, group, 0, self._sequence, payload))
            self._sequence += 1

    def _pickled_groups(self) -> Iterator[tuple[Arrivals, Sequence[int]]]:
        for _, buffers in groupby(self._pickles, key=attrgetter("order")):
            arrivals, numbered, ranks = Arrivals(), _Numbered(), array("q")
            for buffer in buffers:
                keys, of_records, held = pickle.loads(buffer.payload)
                again = [numbered[key] for key in keys]
                ranks.extend(map(again.__getitem__, of_records))
                arrivals.extend(Arrivals(*held))
            yield arrivals, ranks


def _pickled(pickleable: tuple[list[Any], list[int], tuple[Any, list[_Column], Any]]) -> bytes:
    keys, _, (_, columns, _) = pickleable
    flat = dump_flat(pickleable) if all(map(looks_flat, (keys, *columns))) else None
    return dump_records(pickleable) if flat is None else flat


class BroadcastFirstInput:
    """Feeds a chain whose head has no key: its second input whole before its first."""

    def __init__(self, elements: Iterable[InputElement], chain: OperatorChain) -> None:
        self._elements = iter(elements)
        self._chain = chain
        self._held = BufferStore()
        self._watermarks: dict[int, int] = {}
        self._batches: Iterator[Buffer] | None = None

    def process_next(self, controller: Controller) -> None:
        """Reads the next element, or feeds the next batch that waited."""
        if self._batches is None:
            item = next(self._elements, None)
            if item is None:
                self._batches = iter(self._held)
            else:
                self._read(item)
            return
        buffer = next(self._batches, None)
        if buffer is not None:
            self._chain.process_batch(0, *pickle.loads(buffer.payload))
            return
        for number, watermark in sorted(self._watermarks.items()):
            self._chain.process_watermark(number, watermark)
        self._chain.end_input(0)
        controller.all_actions_completed()

    def before_mail(self) -> None:
        """Nothing is left open: each step takes whole batches."""

    def close(self) -> None:
        """Drops what is waiting."""
        self._held.close()

    def _read(self, item: InputElement) -> None:
        number, _, element = item
        if isinstance(element, RecordBatch):
            if number:
                self._chain.process_batch(number, element.values, element.timestamps)
            else:
                payload = dump_records((element.values, element.timestamps))
                self._held.add(Buffer(0, 0, 0, len(self._held), payload))
        elif isinstance(element, Watermark):
            self._watermarks[number] = max(
                element.timestamp, self._watermarks.get(number, MIN_LONG_VALUE)
            )
        elif isinstance(element, EndOfInput) and number:
            self._chain.end_input(number)
