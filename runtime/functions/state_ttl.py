"""How long state lives, and how dead state is found."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from opchain.runtime.functions.ttl_cleanup import CleanupStrategies as _CleanupStrategies
from opchain.runtime.time import millis_of

if TYPE_CHECKING:
    from datetime import timedelta

    from opchain.runtime.time import Duration, Time


_LOG = logging.getLogger("opchain.job")


@dataclass(frozen=True)
class StateTtlConfig:
    """The time to live of a state, set on its descriptor with `enable_time_to_live`.

    >>> ttl = StateTtlConfig.new_builder(3_600_000).update_ttl_on_read_and_write().build()
    >>> ttl.ttl_ms
    3600000
    """

    CleanupStrategies = _CleanupStrategies

    update_type: StateTtlConfig.UpdateType
    state_visibility: StateTtlConfig.StateVisibility
    ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
    ttl: Time | Duration | timedelta | int
    cleanup_strategies: _CleanupStrategies

    def __post_init__(self) -> None:
        if self.ttl_ms <= 0:
            raise ValueError(f"a state's time to live is {self.ttl_ms} ms; it must be positive")

    class UpdateType(Enum):
        """What starts an entry's time again."""

        Disabled = 0
        """Nothing: entries live forever."""
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """What a read gives that finds an expired entry."""

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
        """What starts an entry's time again."""
        return self.update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """What a read gives that finds an expired entry."""
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

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        """How expired entries are removed that nobody reads."""
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
                _CleanupStrategies.Strategies,
                _CleanupStrategies.CleanupStrategy,
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """What starts an entry's time again; at first OnCreateAndWrite."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Writing an entry starts its time again."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Writing and reading an entry start its time again."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """What a read gives that finds an expired entry; at first NeverReturnExpired."""
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
            strategies = _CleanupStrategies
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
            strategies = _CleanupStrategies
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
                query_time_after_num_entries: How many entries share one look at the clock.
                periodic_compaction_time: Files older than this are compacted; 30 days if None.
            """
            strategies = _CleanupStrategies
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
            """Switches the default clean-up off; the ones asked for by name stay on."""
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
                _CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )
