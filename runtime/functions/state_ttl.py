"""The time to live of state, and how expired state is removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from opchain.runtime.time import Duration, Time, millis_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta


_LOG = logging.getLogger("opchain.job")

_DEFAULT_CLEANUP_SIZE = 5
_DEFAULT_ENTRIES_PER_QUERY = 1000
_DEFAULT_COMPACTION = Duration.of_days(30)


class _Settings:
    """Immutable settings, which are equal if class and attributes are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(vars(self).values())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


@dataclass(frozen=True)
class StateTtlConfig:
    """The time to live of a state, set on its descriptor with `enable_time_to_live`.

    >>> ttl = StateTtlConfig.new_builder(3_600_000).update_ttl_on_read_and_write().build()
    >>> ttl.ttl_ms
    3600000
    """

    class CleanupStrategies(_Settings):
        """The strategies that remove expired state, in addition to the removal at each read.

        Args:
            strategies: The settings of each strategy that was configured.
            is_cleanup_in_background: Whether the backend's default clean-up runs if none is configured.
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
                query_time_after_num_entries: How many entries are processed with one reading of the clock.
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
                """How many entries are processed with one reading of the clock."""
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
            """The incremental clean-up, or None. By default it checks 5 entries each time."""
            chosen = dict(self._strategies).get(self.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(chosen, self.IncrementalCleanupStrategy):
                return chosen
            if self._is_cleanup_in_background:
                return self.IncrementalCleanupStrategy(_DEFAULT_CLEANUP_SIZE, False)
            return None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> RocksdbCompactFilterCleanupStrategy | None:
            """The clean-up at compaction, or None."""
            chosen = dict(self._strategies).get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
            if isinstance(chosen, self.RocksdbCompactFilterCleanupStrategy):
                return chosen
            if self._is_cleanup_in_background:
                return self.RocksdbCompactFilterCleanupStrategy(_DEFAULT_ENTRIES_PER_QUERY)
            return None

    update_type: StateTtlConfig.UpdateType
    state_visibility: StateTtlConfig.StateVisibility
    ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
    ttl: Time | Duration | timedelta | int
    cleanup_strategies: CleanupStrategies

    def __post_init__(self) -> None:
        if self.ttl_ms <= 0:
            raise ValueError(f"a state's time to live is {self.ttl_ms} ms; it must be positive")

    class UpdateType(Enum):
        """The accesses that renew the time to live of an entry."""

        Disabled = 0
        """Nothing: entries live forever."""
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether a read may return an expired entry."""

        ReturnExpiredIfNotCleanedUp = 0
        """The entry, if it is still there."""
        NeverReturnExpired = 1
        """The same as if there were none."""

    class TtlTimeCharacteristic(Enum):
        """The clock; Flink has this one only."""

        ProcessingTime = 0

    @property
    def ttl_ms(self) -> int:
        """The time to live in milliseconds."""
        return millis_of(self.ttl)

    @staticmethod
    def new_builder(ttl: Time | Duration | timedelta | int) -> StateTtlConfig.Builder:
        """Starts a configuration; an int is milliseconds."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """The accesses that renew the time to live of an entry."""
        return self.update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Whether a read may return an expired entry."""
        return self.state_visibility

    def get_ttl(self) -> Time | Duration | timedelta | int:
        """The time to live as it was given."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """The clock."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether entries expire at all."""
        return self.update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """How expired entries are removed that are not read again."""
        return self.cleanup_strategies

    class Builder:
        """Builds a StateTtlConfig; every method but `build` returns the builder."""

        def __init__(self, ttl: Time | Duration | timedelta | int) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies,
                StateTtlConfig.CleanupStrategies.CleanupStrategy,
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """Sets the accesses that renew the time to live; OnCreateAndWrite by default."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Writing an entry restarts its time to live."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Writing or reading an entry restarts its time to live."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """Sets whether a read may return an expired entry; NeverReturnExpired by default."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """A read may still give an expired entry."""
            return self.set_state_visibility(
                StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
            )

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """A read never gives an expired entry."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """The clock; there is one."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """The machine's clock."""
            return self.set_ttl_time_characteristic(
                StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            )

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leaves expired entries out of full snapshots; they stay in the running state."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = (
                strategies.EMPTY_STRATEGY
            )
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Looks at this many entries whenever the state is used (hash map backend).

            Args:
                cleanup_size: Entries looked at each time; at least 1.
                run_cleanup_for_every_record: Also with each record that doesn't use the state.
            """
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = (
                strategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration | Time | None = None,
        ) -> StateTtlConfig.Builder:
            """Has no effect, and logs so: the backend on disk has no filter for its compaction.

            Args:
                query_time_after_num_entries: How many entries are processed with one reading of the clock.
                periodic_compaction_time: Files older than this are compacted; 30 days if None.
            """
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                strategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            _LOG.warning(
                "StateTtlConfig.cleanup_in_rocksdb_compact_filter has no effect: RocksDB drops no expired entries when "
                "it compacts its files; use cleanup_incrementally(), which all state backends have"
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Disables the default clean-up. Configured strategies stay enabled."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration | timedelta | int) -> StateTtlConfig.Builder:
            """The time to live; an int is milliseconds."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration.

            Raises:
                ValueError: The time to live is not positive.
            """
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(
                    dict(self._strategies), self._is_cleanup_in_background
                ),
            )
