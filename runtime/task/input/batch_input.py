"""The input of batch mode: key by key, the records of each key by time. Broadcast records come first.

The whole input is read before the first keyed record is processed. Keys are processed by key group, and within a key
group in the order of their first records. The records of a key are sorted by timestamp, with records without a timestamp
first. Records of equal timestamps are in the order of inputs, and then of arrival. When the next key begins, the timers
of the previous key fire and its state is dropped, unless the operator emits all its results at the end. Watermarks come
after all records. So a function sees the same as in Flink's batch mode: complete keys sorted by time, and no event time
before a key ends. (Flink orders keys by their serialized bytes.)

A chain whose results do not depend on the order of records gets them as they arrive. At the end, its operator puts the
keys into the order that sorting would have given.

Records wait in memory up to a limit. The others wait as pickles, which may be spilled to disk. The records of one key
group are in memory while its keys are processed.

Flink: `SortingDataInput`, `MultiInputSortingDataInput`; `BatchCoBroadcastWithKeyedOperator` and
`BatchCoBroadcastWithNonKeyedOperator`, which read the broadcast side first.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.operators.window_folds import OMITTED
from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator
from opchain.runtime.records.arrays import by_part, entries_at, joined, listed, stable_order, taker
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.columns import (
    JSON,
    JSON_AND_KEY,
    Columns,
    Layout,
    are_alike,
    record_count,
)
from opchain.runtime.records.elements import Buffer, EndOfInput, RecordBatch, Watermark
from opchain.runtime.records.record_pickle import dump_flat, dump_records, looks_flat
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.task.input.task_input import TaskInput
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.mailbox.mailbox_processor import Controller
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.operator_chain import OperatorChain

    _Column = list[Any] | array[Any]

MEMORY_BYTES = 64 * 1024 * 1024
"""The bytes of input that are kept unpickled: 230,000 tuples of three ints, or a million that were sent by field."""

ITEM_BYTES, RECORD_BYTES, PLACE_BYTES = 64, 192, 24
"""Estimates of bytes: an item of a list, a tuple around items, and the sort position of a record."""

BATCH_SIZE = 4096

_NO_TIME = array("q", [MIN_LONG_VALUE])

_CODES: dict[type, str] = {int: "q", float: "d"}


class _WaitingInput(TaskInput):
    """The input of a chain that keeps the records of some inputs until all input has arrived.

    Args:
        elements: The elements that the task reads.
        chain: The chain that processes them.
        waits: For each input, whether its records wait. Those of other inputs are processed at once.
    """

    def __init__(
        self, elements: Iterable[InputElement], chain: OperatorChain, waits: Sequence[bool]
    ) -> None:
        self._elements = iter(elements)
        self._chain = chain
        self._waits = waits
        self._watermarks: dict[int, int] = {}
        self._waited: Iterator[Any] | None = None

    @abstractmethod
    def _keep(self, number: int, batch: RecordBatch) -> None:
        """Keeps the records of an input."""

    @abstractmethod
    def _take(self) -> Iterator[Any]:
        """The kept records, in the portions that `_feed` takes."""

    @abstractmethod
    def _feed(self, portion: Any) -> None:
        """Processes some of the kept records."""

    def process_next(self, controller: Controller) -> None:
        """Reads the next element, or processes the next records that waited."""
        if self._waited is None:
            item = next(self._elements, None)
            if item is None:
                self._waited = self._take()
            else:
                self._read(item)
            return
        portion = next(self._waited, None)
        if portion is not None:
            self._feed(portion)
        else:
            self._end()
            controller.all_actions_completed()

    def _read(self, item: InputElement) -> None:
        number, _, element = item
        if isinstance(element, RecordBatch):
            if self._waits[number]:
                self._keep(number, element)
            else:
                self._chain.process_batch(number, element.values, element.timestamps)
        elif isinstance(element, Watermark):
            self._watermarks[number] = max(
                element.timestamp, self._watermarks.get(number, MIN_LONG_VALUE)
            )
        elif isinstance(element, EndOfInput) and not self._waits[number]:
            self._chain.end_input(number)

    def _end(self) -> None:
        for number, watermark in sorted(self._watermarks.items()):
            self._chain.process_watermark(number, watermark)
        for number, waits in enumerate(self._waits):
            if waits:
                self._chain.end_input(number)


class KeySortedInput(_WaitingInput):
    """The input of a chain whose head has a key on some input. Records of inputs without key are processed at once.

    Args:
        elements: The elements that the task reads.
        chain: The chain that processes them.
        memory_bytes: The bytes that are kept unpickled.
    """

    def __init__(
        self,
        elements: Iterable[InputElement],
        chain: OperatorChain,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        head = chain.head
        self._selectors = head.program.arrival_selectors
        super().__init__(elements, chain, [select is not None for select in self._selectors])
        inputs = head.context.task.vertex.inputs
        self._key_lists = {edge.input_number: edge.key_list for edge in inputs}
        backend = head.context.keyed_state
        if head.ends_keys:
            backend.end_each_key(head.end_key)
        self._identity = backend.identity
        hasher = next(key.hasher for key in head.program.keys if key is not None)
        self._router = KeyRouter(backend.max_parallelism, 1, hasher)
        self._store = ArrivalStore(memory_bytes, self._router)
        # Only windows in memory can sort their keys afterwards.
        self._windows: AlignedWindowOperator | None = None
        self._takes_any_order = chain.takes_any_order
        if isinstance(head, AlignedWindowOperator) and type(backend) is HashMapKeyedStateBackend:
            self._windows = head
        self._keys_in_order: dict[Any, None] = {}
        self._is_unsorted = False

    def close(self) -> None:
        """Drops waiting records."""
        self._store.close()

    def _keep(self, number: int, batch: RecordBatch) -> None:
        values, key_list = batch.values, self._key_lists.get(number)
        keys: Sequence[Any]
        if isinstance(values, Columns) and values.are_folded:
            self._keep_folded(number, batch, values)
            return
        if key_list is None or not isinstance(values, Columns):
            select = self._selectors[number]
            assert select is not None, "the records of this input wait"
            keys, key_list = [select(value) for value in values], None
        else:
            keys = values.lists[key_list]
            if values.layout == JSON_AND_KEY:
                batch = replace(batch, values=Columns(values.lists[:key_list], JSON))
                key_list = None
        if not self._identity.plain.issuperset(map(type, keys)):
            keys, key_list = list(map(self._identity.of, keys)), None
        is_any_order = self._takes_any_order is not None and self._takes_any_order(batch.values)
        self._add(number, keys, batch, key_list, is_any_order=is_any_order)

    def _keep_folded(self, number: int, batch: RecordBatch, folded: Columns) -> None:
        """Takes partial results, which give the same results in any order, or counts records that the sender omitted."""
        if folded.layout == OMITTED:
            self._chain.head.records_in += record_count(folded)
        else:
            self._add(number, folded.lists[0], batch, is_any_order=True)

    def _add(
        self,
        number: int,
        keys: Sequence[Any],
        batch: RecordBatch,
        key_list: int | None = None,
        *,
        is_any_order: bool = False,
    ) -> None:
        if self._windows is not None:
            self._keys_in_order.update(dict.fromkeys(keys))
            if is_any_order:
                self._is_unsorted = True
                self._chain.process_batch(number, batch.values, batch.timestamps)
                return
        self._store.add(number, keys, batch, key_list)

    def _take(self) -> Iterator[KeysInOrder]:
        return self._store.batches()

    def _feed(self, keys: KeysInOrder) -> None:
        """Processes records. Inputs take turns, in generated code or with a batch per turn."""
        batches = {number: _batch(each) for number, each in keys.inputs.items()}
        if len(batches) == 1:
            ((number, batch),) = batches.items()
            self._chain.process_batch(number, *batch)
        elif not (self._chain.turn_functions and self._chain.process_turns(keys.turns, batches)):
            done = dict.fromkeys(batches, 0)
            for number, count in keys.turns:
                values, times = batches[number]
                turn = slice(done[number], done[number] + count)
                done[number] = turn.stop
                self._chain.process_batch(number, values[turn], times and times[turn])

    def _end(self) -> None:
        if self._is_unsorted and self._windows is not None:
            keys = list(self._keys_in_order)
            groups = self._router.key_groups_of(list(map(key_of, keys)))
            self._windows.sort_keys(entries_at(keys, stable_order(groups)))
        super()._end()


def _batch(arrivals: Arrivals) -> tuple[Sequence[Any], Sequence[int | None] | None]:
    """The values of an input, and the timestamps, if there are any."""
    times: Sequence[int | None] | None = arrivals.times
    if times is not None and MIN_LONG_VALUE in times:
        times = [None if time == MIN_LONG_VALUE else time for time in times]
    return arrivals.values(), times


class Arrivals:
    """Records of one input as lists: the numbers of their keys, timestamps (None if no record has one), and values.

    Values are held by field if all of them came as `Columns` of one layout, else in one list. A list of ints or floats
    is an array. If the keys are a field, `key_list` is the place of the list that is left out.
    """

    __slots__ = ("columns", "key_list", "keys", "layout", "times")

    def __init__(
        self,
        keys: Sequence[int],
        times: _Column | None,
        columns: list[_Column],
        layout: Layout | None = None,
        key_list: int | None = None,
    ) -> None:
        self.keys = keys
        self.times = times
        self.columns = columns
        self.layout = layout
        self.key_list = key_list

    @classmethod
    def of_batch(
        cls, keys: Sequence[int], batch: RecordBatch, key_list: int | None = None
    ) -> Arrivals:
        """The records of a batch. `key_list` is the number of its list that equals the keys, if there is one."""
        values, times = batch.values, batch.timestamps
        lists = list(values.lists) if isinstance(values, Columns) else [values]
        layout = values.layout if isinstance(values, Columns) else None
        if key_list is not None:
            del lists[key_list]
        packed = None if times is None else _packed_times(times)
        return cls(keys, packed, list(map(_packed, lists)), layout, key_list)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def memory_bytes(self) -> int:
        """An estimate of the memory, without strings and other objects."""
        fields = (8 if isinstance(column, array) else ITEM_BYTES for column in self.columns)
        are_records = self.layout is None and not isinstance(self.columns[-1], array)
        return len(self) * (sum(fields) + PLACE_BYTES + are_records * RECORD_BYTES)

    def values(self) -> Sequence[Any]:
        """The records, which have all lists."""
        lists = [column if isinstance(column, list) else list(column) for column in self.columns]
        return lists[0] if self.layout is None else Columns(lists, self.layout)

    def all_times(self) -> _Column:
        """The timestamps; the smallest number for records without timestamp."""
        return _NO_TIME * len(self) if self.times is None else self.times

    def extend(self, others: Arrivals, keys: Sequence[Any] = ()) -> None:
        """Adds the records of others. `keys` has all keys by number."""
        are_same = are_alike(self.layout, others.layout)
        share_keys = are_same and self.key_list == others.key_list
        for each in (self, others):
            if each.key_list is not None and not share_keys:
                each.columns, each.key_list = each.taker(keys)(range(len(each))).columns, None
            if each.layout is not None and not are_same:
                each.columns, each.layout = [list(each.values())], None
        if self.times is not None or others.times is not None:
            self.times = _joined(self.all_times(), others.all_times())
        self.keys = _joined(self.keys, others.keys)  # type: ignore[arg-type]
        self.columns = list(map(_joined, self.columns, others.columns))

    def taker(self, keys: Sequence[Any]) -> Callable[[Sequence[int]], Arrivals]:
        """A function that returns the records at some positions, at least one, in lists. `keys` has the keys by number."""
        times = None if self.times is None else taker(self.times)
        columns, key_at = list(map(taker, self.columns)), taker(keys)
        key_list, numbers, layout = self.key_list, self.keys, self.layout

        def taken(places: Sequence[int]) -> Arrivals:
            lists: list[_Column] = [column(places) for column in columns]
            if key_list is not None:
                lists.insert(key_list, key_at(entries_at(numbers, places)))
            return Arrivals(places, None if times is None else times(places), lists, layout)

        return taken


def _joined(entries: _Column, more: _Column) -> _Column:
    """The entries followed by more entries. Changes and returns `entries`, if it can hold them."""
    if isinstance(entries, array) and getattr(more, "typecode", "") != entries.typecode:
        entries = list(entries)
    entries.extend(more)
    return entries


class KeysInOrder(NamedTuple):
    """All records of some keys: the records of each input in order, and the turns.

    A turn is an input, and the number of its records that come next.
    """

    inputs: dict[int, Arrivals]
    turns: Sequence[tuple[int, int]]


def _packed(entries: Sequence[Any]) -> _Column:
    """A copy of the entries, with 8 bytes per entry if that is possible."""
    code = _CODES.get(type(entries[0])) if entries else None
    try:
        if code is not None and len(set(map(type, entries))) == 1:
            return array(code, entries)
    except OverflowError:
        pass
    return list(entries)


def _packed_times(times: Sequence[int | None]) -> _Column:
    """A copy of timestamps; the smallest number for records without timestamp."""
    try:
        return array("q", times)
    except TypeError:
        return _packed([MIN_LONG_VALUE if time is None else time for time in times])
    except OverflowError:
        return list(times)


class _Numbered(dict[Any, int]):
    """Numbers keys in the order of first appearance. `entries` are the keys in this order."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self.entries)
        self.entries.append(key)
        return number


class ArrivalStore:
    """Records by key. Records beyond a limit are pickled by key group, and may be spilled to disk."""

    def __init__(self, memory_bytes: int, router: KeyRouter) -> None:
        self._limit = memory_bytes
        self._router = router
        self._sequence = 0
        self._pickles = BufferStore()
        self._begin()

    def _begin(self) -> None:
        self._inputs: dict[int, Arrivals] = {}
        self._keys = _Numbered()

    def add(
        self, number: int, keys: Iterable[Any], batch: RecordBatch, key_list: int | None = None
    ) -> None:
        """Adds records of an input, with their state keys. These may be one of the batch's lists."""
        numbered = array("q", list(map(self._keys.__getitem__, keys)))  # array takes a list faster
        arrivals = Arrivals.of_batch(numbered, batch, key_list)
        held = self._inputs.setdefault(number, arrivals)
        if held is not arrivals:
            held.extend(arrivals, self._keys.entries)
        if sum(each.memory_bytes for each in self._inputs.values()) >= self._limit:
            self._pickle()

    def batches(self) -> Iterator[KeysInOrder]:
        """All records, once: by key group, then by the first appearance of the key, then by time.

        All records of a key are in one batch.
        """
        for keys, inputs in self._sorted_keys():
            numbers, held = zip(*sorted(inputs.items()), strict=True)
            ranks = joined([each.keys for each in held])
            times = (
                []
                if all(each.times is None for each in held)
                else [joined([each.all_times() for each in held])]
            )
            order = stable_order(*times, ranks)
            in_order = entries_at(ranks, order)
            sizes, take = list(map(len, held)), [each.taker(keys) for each in held]
            first = 0
            while first < len(order):
                last = min(first + BATCH_SIZE, len(order)) - 1
                end = bisect_right(in_order, in_order[last], last)
                places, turns = by_part(order[first:end], sizes)
                yield KeysInOrder(
                    {numbers[part]: take[part](each) for part, each in places.items()},
                    [(numbers[part], count) for part, count in turns],
                )
                first = end

    def close(self) -> None:
        """Drops everything."""
        self._begin()
        self._pickles.close()

    def _sorted_keys(self) -> Iterator[tuple[Sequence[Any], dict[int, Arrivals]]]:
        """The keys of some key groups, in the order of key groups, and their records with the places of their keys."""
        if self._sequence:
            self._pickle()
            yield from self._pickled_groups()
        elif self._inputs:
            keys, inputs, by_rank = self._keys.entries, self._inputs, self._by_rank()[0]
            rank_of = stable_order(by_rank)
            self._begin()
            for arrivals in inputs.values():
                arrivals.keys = entries_at(rank_of, arrivals.keys)
            yield entries_at(keys, by_rank), inputs

    def _by_rank(self) -> tuple[Sequence[int], Sequence[int]]:
        """The number of each key and its key group, in the order of ranks."""
        groups = self._router.key_groups_of(list(map(key_of, self._keys.entries)))
        by_rank = stable_order(groups)
        return by_rank, entries_at(groups, by_rank)

    def _pickle(self) -> None:
        """Pickles the records in memory by key group, and within a key group by key."""
        if not self._inputs:
            return
        keys, inputs, (by_rank, groups) = self._keys.entries, self._inputs, self._by_rank()
        rank_of = stable_order(by_rank)
        self._begin()
        for number, arrivals in inputs.items():
            ranks = entries_at(rank_of, arrivals.keys)
            order = stable_order(ranks)
            in_order, take = listed(entries_at(ranks, order)), arrivals.taker(keys)
            for group in sorted(set(groups)):
                low, high = bisect_left(groups, group), bisect_right(groups, group)
                first, end = bisect_left(in_order, low), bisect_left(in_order, high)
                if first == end:
                    continue
                of_group = take(order[first:end])
                of_records = [rank - low for rank in in_order[first:end]]
                held = (of_records, of_group.times, of_group.columns, of_group.layout)
                keys_of_group = [keys[number] for number in by_rank[low:high]]
                payload = _pickled((number, keys_of_group, *held))
                self._pickles.add(Buffer(0, group, 0, self._sequence, payload))
                self._sequence += 1

    def _pickled_groups(self) -> Iterator[tuple[Sequence[Any], dict[int, Arrivals]]]:
        for _, buffers in groupby(self._pickles, key=attrgetter("order")):
            inputs: dict[int, Arrivals] = {}
            numbered = _Numbered()
            for buffer in buffers:
                number, keys, of_records, *held = pickle.loads(buffer.payload)
                again = [numbered[key] for key in keys]
                arrivals = Arrivals([again[rank] for rank in of_records], *held)
                if number in inputs:
                    inputs[number].extend(arrivals)
                else:
                    inputs[number] = arrivals
            yield numbered.entries, inputs


def _pickled(pickleable: tuple[Any, ...]) -> bytes:
    _, keys, _, _, columns, _ = pickleable
    flat = dump_flat(pickleable) if all(map(looks_flat, (keys, *columns))) else None
    return dump_records(pickleable) if flat is None else flat


class BroadcastFirstInput(_WaitingInput):
    """The input of a chain without key that reads a broadcast stream. Records of the first input wait until it ends.

    Args:
        elements: The elements that the task reads.
        chain: The chain that processes them.
        memory_bytes: The bytes that are kept unpickled.
    """

    def __init__(
        self,
        elements: Iterable[InputElement],
        chain: OperatorChain,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        super().__init__(elements, chain, (True, False))
        self._free_bytes = memory_bytes
        self._waiting: deque[RecordBatch] = deque()
        self._pickles = BufferStore()

    def close(self) -> None:
        """Drops waiting records."""
        self._waiting.clear()
        self._pickles.close()

    def _keep(self, number: int, batch: RecordBatch) -> None:  # noqa: ARG002 - only one input waits
        self._free_bytes -= len(batch.values) * (ITEM_BYTES + RECORD_BYTES)
        if self._free_bytes > 0:
            self._waiting.append(batch)
        else:
            payload = dump_records((batch.values, batch.timestamps))
            self._pickles.add(Buffer(0, 0, 0, len(self._pickles), payload))

    def _take(self) -> Iterator[tuple[Any, Any]]:
        while self._waiting:
            batch = self._waiting.popleft()
            yield batch.values, batch.timestamps
        for buffer in self._pickles:
            yield pickle.loads(buffer.payload)

    def _feed(self, portion: tuple[Any, Any]) -> None:
        self._chain.process_batch(0, *portion)
