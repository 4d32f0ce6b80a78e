"""Programs of PyFlink 1.16 to 1.20: their calls work, and warn at the caller's line."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

import pytest

from opchain.common import Configuration, RestartStrategies
from opchain.common.input_dependency_constraint import InputDependencyConstraint
from opchain.compiler.settings.old_spellings import (
    ExecutionMode,
    FsStateBackend,
    MemoryStateBackend,
    RocksDBStateBackend,
    TimeCharacteristic,
)
from opchain.datastream import (
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    StreamExecutionEnvironment,
)

OLD = r"\(\) is of PyFlink 1: "


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration())


def test_the_time_characteristic_sets_the_watermark_interval() -> None:
    env = environment()
    with pytest.warns(DeprecationWarning, match=f"get_stream_time_characteristic{OLD}"):
        assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    with pytest.warns(DeprecationWarning, match="assign_timestamps_and_watermarks") as caught:
        env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert caught[0].filename == __file__
    assert env.get_config().get_auto_watermark_interval() == 0
    with pytest.warns(DeprecationWarning, match=OLD):
        env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    assert env.get_config().get_auto_watermark_interval() == 200
    with (
        pytest.warns(DeprecationWarning, match=OLD),
        pytest.raises(TypeError, match="takes a TimeCharacteristic, not 'EventTime'"),
    ):
        env.set_stream_time_characteristic("EventTime")  # type: ignore[arg-type]


@pytest.mark.parametrize("of", ["environment", "config"])
def test_restart_strategies_are_configuration_keys(of: str) -> None:
    env = environment()
    owner: Any = env if of == "environment" else env.get_config()
    for strategy in (
        RestartStrategies.no_restart(),
        RestartStrategies.fixed_delay_restart(4, 2_000),
        RestartStrategies.failure_rate_restart(2, timedelta(minutes=3), 5_000),
    ):
        with pytest.warns(DeprecationWarning, match="restart-strategy.type"):
            owner.set_restart_strategy(strategy)
        with pytest.warns(DeprecationWarning, match="restart-strategy.type"):
            assert owner.get_restart_strategy() == strategy
    assert env.get_configuration().get_string("restart-strategy.type", "") == "failure-rate"


def test_backends_of_pyflink_1_choose_the_state_and_the_folder() -> None:
    for backend, kind, folder in (
        (MemoryStateBackend(), "hashmap", ""),
        (FsStateBackend("file:///tmp/a"), "hashmap", "file:///tmp/a"),
        (RocksDBStateBackend("file:///tmp/b"), "rocksdb", "file:///tmp/b"),
    ):
        env = environment()
        with pytest.warns(DeprecationWarning, match=r"set_state_backend\(\) is of PyFlink 1"):
            env.set_state_backend(backend)
        configuration = env.get_configuration()
        assert configuration.get_string("state.backend.type", "") == kind
        assert configuration.get_string("execution.checkpointing.dir", "") == folder
        with pytest.warns(DeprecationWarning, match="state.backend.type"):
            assert isinstance(env.get_state_backend(), HashMapStateBackend) == (kind == "hashmap")


def test_checkpoint_settings_of_pyflink_1_set_the_new_keys() -> None:
    config = environment().get_checkpoint_config()
    retained = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    for call in ("enable_externalized_checkpoints", "set_externalized_checkpoint_cleanup"):
        with pytest.warns(DeprecationWarning, match=f"{call}{OLD}"):
            getattr(config, call)(retained)
        with pytest.warns(DeprecationWarning, match="set_externalized|get_externalized"):
            assert config.get_externalized_checkpoint_cleanup() is retained
    with pytest.warns(DeprecationWarning, match="checkpointing.dir"):
        assert isinstance(config.get_checkpoint_storage(), JobManagerCheckpointStorage)
    storage = FileSystemCheckpointStorage("file:///tmp/c")
    with pytest.warns(DeprecationWarning, match="checkpointing.dir"):
        config.set_checkpoint_storage(storage)
    with pytest.warns(DeprecationWarning, match="checkpointing.dir"):
        assert config.get_checkpoint_storage() == storage
    with pytest.warns(DeprecationWarning, match="checkpointing.dir"):
        config.set_checkpoint_storage_dir("file:///tmp/d")
    with pytest.warns(DeprecationWarning, match="checkpointing.dir"):
        assert config.get_checkpoint_storage() == FileSystemCheckpointStorage("file:///tmp/d")


def test_execution_modes_and_constraints_of_pyflink_1_are_stored() -> None:
    config = environment().get_config()
    with pytest.warns(DeprecationWarning, match=OLD):
        assert config.get_execution_mode() is ExecutionMode.PIPELINED
    with pytest.warns(DeprecationWarning, match="set_runtime_mode"):
        config.set_execution_mode(ExecutionMode.BATCH_FORCED)
    with pytest.warns(DeprecationWarning, match=OLD):
        assert config.get_execution_mode() is ExecutionMode.BATCH_FORCED
    with pytest.warns(DeprecationWarning, match=OLD):
        config.set_default_input_dependency_constraint(InputDependencyConstraint.ALL)
    with pytest.warns(DeprecationWarning, match=OLD):
        constraint = config.get_default_input_dependency_constraint()
    assert constraint is InputDependencyConstraint.ALL


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("add_default_kryo_serializer", ("a.B", "a.C")),
        ("register_type_with_kryo_serializer", ("a.B", "a.C")),
        ("register_type", ("a.B",)),
        ("register_pojo_type", ("a.B",)),
        ("register_kryo_type", ("a.B",)),
        ("get_registered_types_with_kryo_serializer_classes", ()),
        ("is_auto_type_registration_disabled", ()),
        ("disable_auto_type_registration", ()),
    ],
)
def test_settings_of_kryo_have_no_effect(call: str, arguments: tuple[str, ...]) -> None:
    env = environment()
    before = env.get_configuration().to_dict()
    owners = [owner for owner in (env, env.get_config()) if hasattr(owner, call)]
    for owner in owners:
        with pytest.warns(DeprecationWarning, match="Kryo serializes Java objects only"):
            getattr(owner, call)(*arguments)
    assert owners
    assert env.get_configuration().to_dict() == before


def test_modules_of_pyflink_1_can_be_imported() -> None:
    for place in ("common.execution_mode", "datastream.time_characteristic"):
        importlib.import_module(f"opchain.{place}")
