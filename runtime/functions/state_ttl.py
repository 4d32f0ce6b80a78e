"""The time to live of state, and how expired state is removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from opchain.runtime.errors import short_repr
from opchain.runtime.time import Duration, Time, millis_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta


E = TypeVar("E", bound=Enum)

_LOG = logging.getLogger("opchain.job")

_DEFAULT_CLEANUP_SIZE = 5
_DEFAULT_ENTRIES_PER_QUERY = 1000
_DEFAULT_COMPACTION = Duration.of_days(30)


class _Settings:
    """Immutable settings. Two objects are equal if their classes and attributes are equal."""

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
        """The strategies that remove expired state that is not read.

        Args:
            strategies: The settings of each configured strategy.
            is_cleanup_in_background: Whether the backend's default clean-up runs if no strategy is configured.
        """

        class Strategies(Enum):
            """The kinds of clean-up."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy(_Settings):
            """The settings of a kind of clean-up."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A kind of clean-up without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """Checks a few entries whenever the state is used.

            Args:
                cleanup_size: The number of entries to check; at least 1.
                run_cleanup_for_every_record: Whether to also check entries for records that do not use the state.
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
                """The number of entries to check each time."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether entries are also checked for records that do not use the state."""
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """Removes entries while RocksDB compacts its files. It has no effect here.

            Args:
                query_time_after_num_entries: The number of entries to process before the clock is read again.
                periodic_compaction_time: The age at which a file is compacted. None: 30 days.
            """

            def __init__(
                self,
                query_time_after_num_entries: int,
                periodic_compaction_time: Duration | Time | None = None,
            ) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = periodic_compaction_time or _DEFAULT_COMPACTION

            def get_query_time_after_num_entries(self) -> int:
                """The number of entries to process before the clock is read again."""
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Duration | Time:
                """The age at which a file is compacted."""
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
            """Whether full snapshots omit expired entries."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in dict(self._strategies)

        def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
            """The incremental clean-up, or None. By default, it checks 5 entries each time."""
            chosen = dict(self._strategies).get(self.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(chosen, self.IncrementalCleanupStrategy):
                return chosen
            if self._is_cleanup_in_background:
                return self.IncrementalCleanupStrategy(_DEFAULT_CLEANUP_SIZE, False)
            return None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> RocksdbCompactFilterCleanupStrategy | None:
            """The clean-up during compaction, or None."""
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
        """Which accesses restart the time to live of an entry."""

        Disabled = 0
        """None: entries never expire."""
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether a read may return an expired entry."""

        ReturnExpiredIfNotCleanedUp = 0
        """A read returns an expired entry that has not been removed yet."""
        NeverReturnExpired = 1
        """A read treats an expired entry as missing."""

    class TtlTimeCharacteristic(Enum):
        """The clock of the time to live. Flink has only processing time."""

        ProcessingTime = 0

    @property
    def ttl_ms(self) -> int:
        """The time to live in milliseconds."""
        return millis_of(self.ttl)

    @staticmethod
    def new_builder(ttl: Time | Duration | timedelta | int) -> StateTtlConfig.Builder:
        """Returns a builder. An int is milliseconds."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """Which accesses restart the time to live of an entry."""
        return self.update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Whether a read may return an expired entry."""
        return self.state_visibility

    def get_ttl(self) -> Time | Duration | timedelta | int:
        """The time to live, as passed to the builder."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """The clock: always processing time."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether entries expire."""
        return self.update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """The strategies that remove expired entries that are not read."""
        return self.cleanup_strategies

    class Builder:
        """Builds a StateTtlConfig. All methods but `build` return the builder."""

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
            """Sets which accesses restart the time to live; OnCreateAndWrite by default."""
            self._update_type = _checked("set_update_type", StateTtlConfig.UpdateType, update_type)
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Restarts the time to live of an entry when it is written."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Restarts the time to live of an entry when it is written or read."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """Sets whether a read may return an expired entry; NeverReturnExpired by default."""
            self._state_visibility = _checked(
                "set_state_visibility", StateTtlConfig.StateVisibility, state_visibility
            )
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Lets reads return expired entries that have not been removed yet."""
            return self.set_state_visibility(
                StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
            )

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Makes reads treat expired entries as missing."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Sets the clock. There is only processing time."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Sets processing time as the clock. This is the default."""
            return self.set_ttl_time_characteristic(
                StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            )

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Omits expired entries from full snapshots. They stay in the running state."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = (
                strategies.EMPTY_STRATEGY
            )
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Checks this many entries whenever the state is used.

            Args:
                cleanup_size: The number of entries to check each time; at least 1.
                run_cleanup_for_every_record: Whether to also check entries for records that do not use the state.
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
            """Has no effect and logs a warning, because the RocksDB backend has no compaction filter.

            Args:
                query_time_after_num_entries: The number of entries to process before the clock is read again.
                periodic_compaction_time: The age at which a file is compacted. None: 30 days.
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
            """Disables the default clean-up. Configured strategies still run."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration | timedelta | int) -> StateTtlConfig.Builder:
            """Sets the time to live. An int is milliseconds."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Returns the configuration.

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


def _checked(method: str, kind: type[E], value: E) -> E:
    if not isinstance(value, kind):
        raise TypeError(f"{method}() takes a {kind.__qualname__}, not {short_repr(value)}")
    return value
