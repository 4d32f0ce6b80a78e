"""Batch mode's input: key by key, each key's records in the order of time, broadcast records first.

Everything is read before the first keyed record is processed. Then come the keys, by key group and within
a group as they first came in; of each its records by timestamp (those without first, equal ones by input
and in the order of arrival). When the next key comes, the timers of the last one fire and its state is
dropped, unless the operator gives all its results at the end. Watermarks come behind all records. So a function sees in batch mode what Flink shows it there: complete keys, sorted
by time, and no event time until a key ends. (Flink orders keys by the bytes of their serialized form.)

What is read waits in memory up to a number of records, the rest as pickles that may go to disk. Memory
also holds the records of one key group while its keys are processed.

Flink: `SortingDataInput`, `MultiInputSortingDataInput`; `BatchCoBroadcastWithKeyedOperator` and
`BatchCoBroadcastWithNonKeyedOperator`, which read the broadcast side first.
"""

from __future__ import annotations

import pickle
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MIN_LONG_VALUE
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.elements import Buffer, EndOfInput, RecordBatch, Watermark
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.keys.key_router import KeyRouter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.mailbox.default_action import Controller
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.operator_chain import OperatorChain

    Arrival = tuple[Any, int, int, Any]
    """State key, timestamp, input number, record."""

RECORDS_IN_MEMORY = 200_000
BATCH_SIZE = 4096


_time_and_input, _input = itemgetter(1, 2), itemgetter(2)


class KeySortedInput:
    """Feeds a chain whose head has a key on some input; records of the others come at once.

    Args:
        elements: What the task reads.
        chain: What is fed.
        records_in_memory: How many records wait unpickled.
    """

    def __init__(
        self,
        elements: Iterable[InputElement],
        chain: OperatorChain,
        records_in_memory: int = RECORDS_IN_MEMORY,
    ) -> None:
        self._elements = iter(elements)
        self._chain = chain
        head = chain.head
        self._selectors = head.program.selectors
        backend = head.context.keyed_state
        hasher = next(key.hasher for key in head.program.keys if key is not None)
        if head.ends_keys:
            backend.end_each_key(head.context.timers.end_key)
        self._identify = backend.identity.of
        self._router = KeyRouter(backend.max_parallelism, 1, hasher)
        self._store = ArrivalStore(records_in_memory)
        self._watermarks: dict[int, int] = {}
        self._keys: Iterator[list[Arrival]] | None = None

    def process_next(self, controller: Controller) -> None:
        """Reads the next element, or feeds the next keys."""
        if self._keys is None:
            item = next(self._elements, None)
            if item is None:
                self._keys = self._store.keys()
            else:
                self._read(item)
            return
        arrivals: list[Arrival] = []
        for of_key in self._keys:
            of_key.sort(key=_time_and_input)
            arrivals += of_key
            if len(arrivals) >= BATCH_SIZE:
                break
        if arrivals:
            self._feed(arrivals)
        else:
            self._end()
            controller.all_actions_completed()

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
        keys = [select(value) for value in batch.values]
        timestamps = repeat(None) if batch.timestamps is None else batch.timestamps
        self._store.add(
            self._router.key_groups_of(keys),
            [
                (key, MIN_LONG_VALUE if timestamp is None else timestamp, number, value)
                for key, timestamp, value in zip(
                    map(self._identify, keys), timestamps, batch.values, strict=False
                )
            ],
        )

    def _feed(self, arrivals: list[Arrival]) -> None:
        """Processes records, runs of one input as a batch."""
        for number, run in groupby(arrivals, key=_input):
            timestamps: list[int | None] = []
            values = []
            for _, time, _, value in run:
                timestamps.append(None if time == MIN_LONG_VALUE else time)
                values.append(value)
            self._chain.process_batch(number, values, timestamps)

    def _end(self) -> None:
        for number, watermark in sorted(self._watermarks.items()):
            self._chain.process_watermark(number, watermark)
        for number, select in enumerate(self._selectors):
            if select is not None:
                self._chain.end_input(number)


class ArrivalStore:
    """Records by key group, pickled from a number of records on."""

    def __init__(self, records_in_memory: int) -> None:
        self._limit = records_in_memory
        self._groups: dict[int, list[Arrival]] = {}
        self._count = 0
        self._sequence = 0
        self._pickles = BufferStore()

    def add(self, key_groups: Sequence[int], arrivals: Sequence[Arrival]) -> None:
        """Takes records in."""
        groups = self._groups
        for group, arrival in zip(key_groups, arrivals, strict=True):
            kept = groups.get(group)
            if kept is None:
                groups[group] = [arrival]
            else:
                kept.append(arrival)
        self._count += len(arrivals)
        if self._count >= self._limit:
            self._pickle()

    def keys(self) -> Iterator[list[Arrival]]:
        """The records of each key, once; keys by key group, and then as they came."""
        if self._sequence:
            self._pickle()
            for group in self._pickled_groups():
                yield from _by_key(group)
            return
        for number in sorted(self._groups):
            yield from _by_key(self._groups.pop(number))

    def close(self) -> None:
        """Drops everything."""
        self._groups.clear()
        self._pickles.close()

    def _pickle(self) -> None:
        for group, arrivals in self._groups.items():
            payload = dump_records(arrivals)
            self._pickles.add(Buffer(0, group, 0, self._sequence, payload))
            self._sequence += 1
        self._groups.clear()
        self._count = 0

    def _pickled_groups(self) -> Iterator[list[Arrival]]:
        current, arrivals = -1, list[Any]()
        for buffer in self._pickles:
            if buffer.order != current:
                yield arrivals
                current, arrivals = buffer.order, []
            arrivals += pickle.loads(buffer.payload)
        yield arrivals


def _by_key(arrivals: list[Arrival]) -> Iterator[list[Arrival]]:
    keys: dict[Any, list[Arrival]] = {}
    for arrival in arrivals:
        keys.setdefault(arrival[0], []).append(arrival)
    arrivals.clear()
    for key in list(keys):
        yield keys.pop(key)


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
