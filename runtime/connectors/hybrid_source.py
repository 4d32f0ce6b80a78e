"""HybridSource: several sources one after the other, such as files with history and then a Kafka topic."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.errors import require_instance
from opchain.runtime.functions.source import Source, SourceReaderContext
from opchain.runtime.records.elements import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.types.type_information import TypeInformation


class HybridSplit(NamedTuple):
    """A split of one of the sources."""

    stage: int
    split: Any


class HybridSource(Source[Any]):
    """The records of a chain of sources. Flink: HybridSource.

    A subtask continues with the next source when it has read its own splits of the current one. In Flink it also waits
    for the other subtasks. All sources except the last one are bounded.

    >>> from opchain.runtime.connectors.collection import NumberSequenceSource
    >>> HybridSource.builder(NumberSequenceSource(1, 2)).add_source(NumberSequenceSource(8, 9)).build()
    HybridSource(NumberSequenceSource(1, 2), NumberSequenceSource(8, 9))

    Raises:
        ValueError: A source before the last one is unbounded.
    """

    def __init__(self, *sources: Source[Any]) -> None:
        for number, source in enumerate(sources[:-1], 1):
            if not source.is_bounded:
                raise ValueError(
                    f"source {number} of a HybridSource, {source!r}, never ends, so no source can follow it"
                )
        self.sources = sources
        self.is_bounded = sources[-1].is_bounded
        self.needs_positions = sources[-1].needs_positions
        self.has_timestamps = any(source.has_timestamps for source in sources)

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(map(repr, self.sources))})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The datasets of its sources, for lineage."""
        return tuple(each for source in self.sources for each in getattr(source, "datasets", ()))

    @staticmethod
    def builder(first_source: Source[Any]) -> HybridSourceBuilder:
        """Starts a chain with its first source."""
        return HybridSourceBuilder(first_source)

    def planned(self, parallelism: int) -> HybridSource:
        """The same chain, with each source planned."""
        return self._of(*(source.planned(parallelism) for source in self.sources))

    def uncut(self) -> HybridSource:
        """The same chain, with sources that do not divide files."""
        return self._of(*(source.uncut() for source in self.sources))

    def _of(self, *sources: Source[Any]) -> HybridSource:
        other = copy.copy(self)
        other.sources = sources
        return other

    def splits(self, parallelism: int) -> list[list[HybridSplit]]:
        """The splits of all sources, one source after the other."""
        dealt = [source.splits(parallelism) for source in self.sources]
        return [
            [
                HybridSplit(stage, split)
                for stage, parts in enumerate(dealt)
                for split in parts[each]
            ]
            for each in range(parallelism)
        ]

    def split_stage(self, split: HybridSplit) -> int:
        """The number of its source."""
        return split.stage

    def split_name(self, split: HybridSplit) -> str | None:
        """The name that its source gives it, if any."""
        name = self.sources[split.stage].split_name(split.split)
        return None if name is None else f"source {split.stage}: {name}"

    def split_after(self, split: HybridSplit, records: int) -> HybridSplit | None:
        """The rest of the split, from its source."""
        rest = self.sources[split.stage].split_after(split.split, records)
        return None if rest is None else HybridSplit(split.stage, rest)

    def open(self, context: SourceReaderContext) -> None:
        """Opens all sources."""
        for source in self.sources:
            source.open(context)

    def read(self, split: HybridSplit, batch_size: int) -> Iterator[Sequence[Any]]:
        """The records of a split. If only other sources of the chain have timestamps, these are None."""
        source = self.sources[split.stage]
        for batch in source.read(split.split, batch_size):
            if self.has_timestamps and not source.has_timestamps:
                values = list(batch)
                yield RecordBatch(values, [None] * len(values))  # type: ignore[misc]
            else:
                yield batch

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type of the first source that has one."""
        types = (source.get_produced_type() for source in self.sources)
        return next((found for found in types if found is not None), None)


class HybridSourceBuilder:
    """Builds a chain of sources. Flink: HybridSource.HybridSourceBuilder."""

    def __init__(self, first_source: Source[Any]) -> None:
        self._sources: list[Source[Any]] = []
        self.add_source(first_source)

    def add_source(self, source: Source[Any]) -> HybridSourceBuilder:
        """Adds the source that follows when the current last one has ended.

        Raises:
            TypeError: The argument is not a source.
        """
        require_instance(source, Source, "a HybridSource", "sources, such as a FileSource")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        """The source."""
        return HybridSource(*self._sources)
