from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from opchain.runtime.functions.state_ttl import StateTtlConfig
from opchain.runtime.time import Duration, Time

UPDATE = StateTtlConfig.UpdateType
VISIBILITY = StateTtlConfig.StateVisibility
CLOCK = StateTtlConfig.TtlTimeCharacteristic


def test_the_defaults_are_those_of_flink() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).build()
    assert config.get_update_type() is UPDATE.OnCreateAndWrite
    assert config.get_state_visibility() is VISIBILITY.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is CLOCK.ProcessingTime
    assert config.get_ttl() == Time.seconds(1)
    assert config.is_enabled()
    assert config.get_cleanup_strategies().is_cleanup_in_background()
    assert not config.get_cleanup_strategies().in_full_snapshot()


@pytest.mark.parametrize(
    "ttl", [1000, Time.seconds(1), Duration.of_seconds(1), timedelta(seconds=1)], ids=repr
)
def test_a_time_to_live_takes_milliseconds_time_duration_or_timedelta(ttl: Any) -> None:
    assert StateTtlConfig.new_builder(ttl).build().ttl_ms == 1000
    assert StateTtlConfig.new_builder(5).set_ttl(ttl).build().ttl_ms == 1000


def test_each_builder_method_sets_its_setting() -> None:
    builder = StateTtlConfig.new_builder(1)
    assert builder.update_ttl_on_read_and_write().build().update_type is UPDATE.OnReadAndWrite
    assert builder.update_ttl_on_create_and_write().build().update_type is UPDATE.OnCreateAndWrite
    shown = builder.return_expired_if_not_cleaned_up().build().state_visibility
    assert shown is VISIBILITY.ReturnExpiredIfNotCleanedUp
    assert builder.never_return_expired().build().state_visibility is VISIBILITY.NeverReturnExpired
    assert builder.use_processing_time().build().ttl_time_characteristic is CLOCK.ProcessingTime
    assert not builder.set_update_type(UPDATE.Disabled).build().is_enabled()
    assert builder.cleanup_full_snapshot().build().cleanup_strategies.in_full_snapshot()
    quiet = builder.disable_cleanup_in_background().build().cleanup_strategies
    assert not quiet.is_cleanup_in_background()
    incremental = builder.cleanup_incrementally(7, True).build().cleanup_strategies
    assert incremental.get_incremental_cleanup_strategy() == (
        StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy(7, True)
    )
    compacting = builder.cleanup_in_rocksdb_compact_filter(9, Duration.of_hours(1)).build()
    assert compacting.cleanup_strategies.get_rocksdb_compact_filter_cleanup_strategy() == (
        StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy(
            9, Duration.of_hours(1)
        )
    )


def test_a_built_configuration_does_not_change_with_its_builder() -> None:
    builder = StateTtlConfig.new_builder(1)
    before = builder.build()
    builder.cleanup_full_snapshot().update_ttl_on_read_and_write()
    assert before == StateTtlConfig.new_builder(1).build()


def test_ttl_configurations_are_compared_by_value() -> None:
    config = StateTtlConfig.new_builder(1).cleanup_full_snapshot().build()
    copy = pickle.loads(pickle.dumps(config))
    assert copy == config
    assert hash(copy) == hash(config)
    assert config != StateTtlConfig.new_builder(1).build()
    assert config != StateTtlConfig.new_builder(2).cleanup_full_snapshot().build()


@pytest.mark.parametrize("ttl", [0, -5, Time.milliseconds(0)])
def test_a_time_to_live_must_be_positive(ttl: Any) -> None:
    with pytest.raises(ValueError, match=r"time to live is (0|-5) ms; it must be positive"):
        StateTtlConfig.new_builder(ttl).build()


@pytest.mark.parametrize("method", ["set_update_type", "set_state_visibility"])
def test_a_setting_must_be_a_member_of_its_enum(method: str) -> None:
    with pytest.raises(TypeError, match=rf"{method}\(\) takes a StateTtlConfig\..*, not 3"):
        getattr(StateTtlConfig.new_builder(10), method)(3)
