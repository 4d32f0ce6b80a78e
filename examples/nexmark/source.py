"""Reads events from files of JSON lines. All subtasks read parts of each file."""

from __future__ import annotations

import heapq
from copy import copy
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from examples.nexmark.json_lines import event_decoder
from opchain.runtime.connectors.file_source import FileRange, TextLineSource
from opchain.runtime.functions.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class EventSource(Source[Any]):
    """The events of a file, or of all files of a folder.

    `fields` has the fields to read, by kind of event. With `is_timed`, a subtask reads all of its files at the same
    pace. An event is then no more out of order than it is in its own file, so no event is late because its file was
    read last.
    """

    def __init__(self, path: str) -> None:
        self.lines = TextLineSource(path)
        self.fields: dict[str, tuple[str, ...]] = {}
        self.is_timed = False

    def planned(self, parallelism: int) -> EventSource:
        """The same source with the files that are there now, for all subtasks."""
        planned = copy(self)
        planned.lines = cast("TextLineSource", self.lines.planned(parallelism))
        return planned

    def splits(self, parallelism: int) -> Sequence[Sequence[tuple[FileRange, ...]]]:
        """The parts of the files that each subtask reads, as one split."""
        return [[tuple(ranges)] if ranges else [] for ranges in self.lines.splits(parallelism)]

    def read(self, split: tuple[FileRange, ...], batch_size: int) -> Iterator[Sequence[Any]]:
        """The events whose lines start in the ranges, in batches of whole blocks with at least `batch_size` events."""
        decode = event_decoder(self.fields)
        blocks = [self._decoded(part, decode) for part in split]
        if self.is_timed and len(blocks) > 1:
            merged = heapq.merge(*map(chain.from_iterable, blocks), key=event_time)
            while batch := list(islice(merged, batch_size)):
                yield batch
            return
        batch: list[Any] = []
        for events in chain.from_iterable(blocks):
            batch += events
            if len(batch) >= batch_size:
                yield batch
                batch = []
        if batch:
            yield batch

    def _decoded(
        self, part: FileRange, decode: Callable[[bytes], list[Any]]
    ) -> Iterator[list[Any]]:
        for block in self.lines.read_blocks(part):
            try:
                events = decode(block)
            except Exception as error:
                raise _malformed(part, block, decode) from error
            yield events


def event_time(event: Any) -> int:
    """The time of an event of any kind, in milliseconds since 1970."""
    time: int = (event.bid or event.auction or event.person).dateTime
    return time


def _malformed(part: FileRange, block: bytes, decode: Callable[[bytes], list[Any]]) -> ValueError:
    """An error that shows the first line that is not an event."""
    for line in block.splitlines():
        try:
            decode(line)
        except Exception as error:  # noqa: BLE001, PERF203 - the library's own, of three libraries
            return ValueError(f"{part.path}: {line[:80]!r} is not a Nexmark event ({error})")
    return ValueError(f"{part.path}: a block that begins with {block[:80]!r} cannot be decoded")
