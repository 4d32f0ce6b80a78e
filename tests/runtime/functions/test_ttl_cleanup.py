from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.state_ttl import StateTtlConfig
from opchain.runtime.time import Duration

CleanupStrategies = StateTtlConfig.CleanupStrategies
KIND = CleanupStrategies.Strategies
INCREMENTAL = CleanupStrategies.IncrementalCleanupStrategy
COMPACTING = CleanupStrategies.RocksdbCompactFilterCleanupStrategy


def test_cleanup_in_background_has_default_strategies() -> None:
    strategies = CleanupStrategies({}, True)
    assert strategies.get_incremental_cleanup_strategy() == INCREMENTAL(5, False)
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy() == COMPACTING(1000)


def test_without_cleanup_in_background_only_configured_strategies_are_used() -> None:
    strategies = CleanupStrategies({}, False)
    assert strategies.get_incremental_cleanup_strategy() is None
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy() is None
    assert not strategies.in_full_snapshot()
    named = CleanupStrategies(
        {
            KIND.INCREMENTAL_CLEANUP: INCREMENTAL(3, True),
            KIND.ROCKSDB_COMPACTION_FILTER: COMPACTING(7),
            KIND.FULL_STATE_SCAN_SNAPSHOT: CleanupStrategies.EMPTY_STRATEGY,
        },
        False,
    )
    incremental = named.get_incremental_cleanup_strategy()
    compacting = named.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (3, True)
    assert compacting is not None
    assert compacting.get_query_time_after_num_entries() == 7
    assert compacting.get_periodic_compaction_time() == Duration.of_days(30)
    assert named.in_full_snapshot()


@pytest.mark.parametrize("size", [0, -1])
def test_the_size_of_incremental_cleanup_must_be_at_least_1(size: int) -> None:
    with pytest.raises(ValueError, match=rf"checks {size} entries .* at least 1"):
        INCREMENTAL(size, False)


ONE_OF_EACH: list[Any] = [
    CleanupStrategies.EmptyCleanupStrategy(),
    INCREMENTAL(3, True),
    COMPACTING(3),
    CleanupStrategies({}, True),
]


@pytest.mark.parametrize("index", range(4))
def test_cleanup_strategies_are_compared_by_value(index: int) -> None:
    same: list[Any] = [
        CleanupStrategies.EMPTY_STRATEGY,
        INCREMENTAL(3, True),
        COMPACTING(3, Duration.of_days(30)),
        CleanupStrategies({}, True),
    ]
    assert ONE_OF_EACH[index] == same[index]
    assert hash(ONE_OF_EACH[index]) == hash(same[index])
    assert [other == same[index] for other in ONE_OF_EACH].count(True) == 1


def test_the_order_of_strategies_does_not_matter() -> None:
    kinds = {
        KIND.ROCKSDB_COMPACTION_FILTER: COMPACTING(1),
        KIND.INCREMENTAL_CLEANUP: ONE_OF_EACH[1],
    }
    other_way = dict(reversed(kinds.items()))
    assert CleanupStrategies(kinds, True) == CleanupStrategies(other_way, True)
    assert hash(CleanupStrategies(kinds, True)) == hash(CleanupStrategies(other_way, True))


def test_the_repr_of_a_strategy_shows_its_settings() -> None:
    assert repr(INCREMENTAL(3, True)) == (
        "IncrementalCleanupStrategy(cleanup_size=3, run_cleanup_for_every_record=True)"
    )
