"""How expired state is removed that nobody reads any more."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.time import Time

_DEFAULT_CLEANUP_SIZE = 5
_DEFAULT_ENTRIES_PER_QUERY = 1000
_DEFAULT_COMPACTION = Duration.of_days(30)


class _Settings:
    """Equal where the class and all attributes are equal; never changed once made."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(vars(self).values())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class CleanupStrategies(_Settings):
    """The ways of removing expired state, beside the removal of what a read finds expired.

    Known to users as `StateTtlConfig.CleanupStrategies`.

    Args:
        strategies: The settings of each kind that was asked for by name.
        is_cleanup_in_background: Whether a backend's default clean-up runs where none was.
    """

    class Strategies(Enum):
        """The kinds of clean-up."""

        FULL_STATE_SCAN_SNAPSHOT = 0
        INCREMENTAL_CLEANUP = 1
        ROCKSDB_COMPACTION_FILTER = 2

    class CleanupStrategy(_Settings):
        """The settings of one kind."""

    class EmptyCleanupStrategy(CleanupStrategy):
        """A kind without settings."""

    class IncrementalCleanupStrategy(CleanupStrategy):
        """Looks at a few entries with each use of the state.

        Args:
            cleanup_size: How many entries; at least 1.
            run_cleanup_for_every_record: Also with records that don't use the state.
        """

        def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
            if cleanup_size <= 0:
                raise ValueError(
                    f"incremental clean-up checks {cleanup_size} entries at a time; "
                    "it must be at least 1"
                )
            self._cleanup_size = cleanup_size
            self._run_cleanup_for_every_record = run_cleanup_for_every_record

        def get_cleanup_size(self) -> int:
            """How many entries are looked at each time."""
            return self._cleanup_size

        def run_cleanup_for_every_record(self) -> bool:
            """Whether entries are also looked at with records that don't use the state."""
            return self._run_cleanup_for_every_record

    class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
        """Drops entries while the embedded backend compacts its files.

        Args:
            query_time_after_num_entries: How many entries share one look at the clock.
            periodic_compaction_time: The age at which a file is compacted for this alone; 30 days
                if None.
        """

        def __init__(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration | Time | None = None,
        ) -> None:
            self._query_time_after_num_entries = query_time_after_num_entries
            self._periodic_compaction_time = periodic_compaction_time or _DEFAULT_COMPACTION

        def get_query_time_after_num_entries(self) -> int:
            """How many entries share one look at the clock."""
            return self._query_time_after_num_entries

        def get_periodic_compaction_time(self) -> Duration | Time:
            """The age at which a file is compacted for this alone."""
            return self._periodic_compaction_time

    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def __init__(
        self, strategies: Mapping[Strategies, CleanupStrategy], is_cleanup_in_background: bool
    ) -> None:
        # A tuple in a fixed order, so that equal settings have equal hashes and pickles.
        self._strategies = tuple(sorted(strategies.items(), key=lambda entry: entry[0].value))
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """Whether the backend's default clean-up runs."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Whether full snapshots leave expired entries out."""
        return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in dict(self._strategies)

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """The incremental clean-up, or None where there is none; by default 5 entries each time."""
        chosen = dict(self._strategies).get(self.Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, self.IncrementalCleanupStrategy):
            return chosen
        if self._is_cleanup_in_background:
            return self.IncrementalCleanupStrategy(_DEFAULT_CLEANUP_SIZE, False)
        return None

    def get_rocksdb_compact_filter_cleanup_strategy(
        self,
    ) -> RocksdbCompactFilterCleanupStrategy | None:
        """The clean-up at compaction, or None where there is none."""
        chosen = dict(self._strategies).get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, self.RocksdbCompactFilterCleanupStrategy):
            return chosen
        if self._is_cleanup_in_background:
            return self.RocksdbCompactFilterCleanupStrategy(_DEFAULT_ENTRIES_PER_QUERY)
        return None
