from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Configuration
from opchain.compiler.settings.settings_reader import read_settings
from opchain.compiler.settings.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
)
from opchain.datastream import (
    CheckpointingMode,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from opchain.runtime.errors import GraphError


@pytest.fixture
def bare() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment()


def test_the_default_settings_are_flinks_except_the_parallelism(
    bare: StreamExecutionEnvironment,
) -> None:
    assert bare.get_parallelism() == 1
    assert bare.get_max_parallelism() == -1
    assert bare.get_buffer_timeout() == 100
    assert bare.is_chaining_enabled()
    assert bare.is_chaining_of_operators_with_different_max_parallelism_enabled()
    assert bare.get_checkpoint_interval() == -1
    assert bare.is_changelog_state_backend_enabled() is None
    assert bare.get_default_savepoint_directory() is None
    assert not bare.is_unaligned_checkpoints_enabled()
    assert not bare.is_force_unaligned_checkpoints()


SETTERS: list[tuple[str, tuple[Any, ...], str, Any]] = [
    ("set_parallelism", (3,), "get_parallelism", 3),
    ("set_max_parallelism", (64,), "get_max_parallelism", 64),
    ("set_buffer_timeout", (0,), "get_buffer_timeout", 0),
    ("set_buffer_timeout", (-1,), "get_buffer_timeout", -1),
    ("disable_operator_chaining", (), "is_chaining_enabled", False),
    ("enable_checkpointing", (500,), "get_checkpoint_interval", 500),
    (
        "enable_checkpointing",
        (500, CheckpointingMode.AT_LEAST_ONCE),
        "get_checkpointing_mode",
        CheckpointingMode.AT_LEAST_ONCE,
    ),
    (
        "enable_checkpointing",
        (500,),
        "get_checkpointing_consistency_mode",
        CheckpointingMode.EXACTLY_ONCE,
    ),
    ("enable_changelog_state_backend", (True,), "is_changelog_state_backend_enabled", True),
    ("set_default_savepoint_directory", ("/s",), "get_default_savepoint_directory", "/s"),
]


@pytest.mark.parametrize(("setter", "arguments", "getter", "expected"), SETTERS)
def test_setters_of_the_environment_return_the_environment(
    bare: StreamExecutionEnvironment, setter: str, arguments: Any, getter: str, expected: Any
) -> None:
    assert getattr(bare, setter)(*arguments) is bare
    assert getattr(bare, getter)() == expected


@pytest.mark.parametrize(
    ("key", "text", "getter", "expected"),
    [
        ("parallelism.default", "3", "get_parallelism", 3),
        ("pipeline.max-parallelism", "64", "get_max_parallelism", 64),
        ("execution.buffer-timeout.interval", "2 s", "get_buffer_timeout", 2000),
        ("execution.buffer-timeout", "2 s", "get_buffer_timeout", 2000),
        ("execution.buffer-timeout.enabled", "false", "get_buffer_timeout", -1),
        ("pipeline.operator-chaining.enabled", "false", "is_chaining_enabled", False),
        ("pipeline.operator-chaining", "false", "is_chaining_enabled", False),
        ("execution.checkpointing.interval", "2 s", "get_checkpoint_interval", 2000),
        ("execution.checkpointing.savepoint-dir", "/s", "get_default_savepoint_directory", "/s"),
        ("state.savepoints.dir", "/s", "get_default_savepoint_directory", "/s"),
    ],
)
def test_a_configuration_key_has_the_same_effect_as_its_setter(
    bare: StreamExecutionEnvironment, key: str, text: str, getter: str, expected: Any
) -> None:
    bare.configure(Configuration.from_dict({key: text}))
    assert getattr(bare, getter)() == expected


def test_set_state_backend_sets_two_configuration_keys(bare: StreamExecutionEnvironment) -> None:
    on_disk = EmbeddedRocksDBStateBackend()
    assert bare.set_state_backend(on_disk) is bare
    configuration = bare.get_configuration()
    assert read_settings(configuration).state_backend == "rocksdb"
    on_disk.set_db_storage_paths("/fast", "/faster")
    bare.set_state_backend(on_disk)
    assert read_settings(configuration).state_folders == "/fast,/faster"
    bare.set_state_backend(HashMapStateBackend())
    assert read_settings(configuration).state_backend == "hashmap"
    with pytest.raises(TypeError, match="set_state_backend"):
        bare.set_state_backend("rocksdb")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'state\.backend\.type'.*'forst'"):
        bare.configure(Configuration.from_dict({"state.backend.type": "forst"}))


def test_the_last_of_a_setter_and_a_configuration_counts(bare: StreamExecutionEnvironment) -> None:
    bare.set_parallelism(3).configure(Configuration.from_dict({"parallelism.default": "5"}))
    assert bare.get_parallelism() == 5
    assert bare.set_parallelism(7).get_parallelism() == 7
    bare.configure(Configuration.from_dict({"pipeline.max-parallelism": "64"}))
    assert bare.get_parallelism() == 7


def test_the_execution_config_is_a_view_of_the_configuration(
    bare: StreamExecutionEnvironment,
) -> None:
    bare.get_config().set_parallelism(6)
    assert bare.get_parallelism() == 6
    bare.get_checkpoint_config().set_checkpoint_interval(50)
    assert bare.get_checkpoint_interval() == 50


def test_minus_1_in_the_execution_config_means_not_set(bare: StreamExecutionEnvironment) -> None:
    bare.get_config().set_parallelism(-1)
    assert bare.get_parallelism() == 1


def test_configure_keeps_unknown_keys(bare: StreamExecutionEnvironment) -> None:
    bare.configure(Configuration.from_dict({"spark.executor.memory": "2g"}))
    assert bare.get_configuration().get_string("spark.executor.memory", "") == "2g"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parallelism.default", "four"),
        ("parallelism.default", "0"),
        ("pipeline.max-parallelism", "40000"),
        ("execution.runtime-mode", "BATCHED"),
        ("pipeline.operator-chaining.enabled", "maybe"),
        ("execution.buffer-timeout.interval", "soon"),
    ],
)
def test_an_invalid_value_is_an_error_with_its_key_and_changes_nothing(
    bare: StreamExecutionEnvironment, key: str, value: str
) -> None:
    with pytest.raises(ValueError, match=key) as refused:
        bare.configure(Configuration.from_dict({"pipeline.name": "job", key: value}))
    assert value in str(refused.value)
    assert bare.get_configuration().to_dict() == {}


def test_an_environment_can_be_created_with_a_configuration() -> None:
    configuration = Configuration.from_dict({"parallelism.default": "3"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    configuration.set_string("parallelism.default", "9")
    assert env.get_parallelism() == 3


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode))
def test_set_runtime_mode_sets_the_mode_of_the_program(
    bare: StreamExecutionEnvironment, mode: RuntimeExecutionMode
) -> None:
    bare.set_runtime_mode(mode)
    assert bare.program().settings.runtime_mode == mode.name


def test_the_default_of_new_environments_can_be_changed(bare: StreamExecutionEnvironment) -> None:
    bare.set_default_local_parallelism(3)
    try:
        assert bare.get_default_local_parallelism() == 3
        assert StreamExecutionEnvironment().get_parallelism() == 3
        assert bare.get_parallelism() == 1
        assert StreamExecutionEnvironment().program().settings.parallelism == 3
    finally:
        bare.set_default_local_parallelism(1)


def test_a_slot_sharing_group_is_registered_once(bare: StreamExecutionEnvironment) -> None:
    group = SlotSharingGroup.builder("gpu").set_cpu_cores(1).set_task_heap_memory_mb(8).build()
    other = SlotSharingGroup.builder("gpu").set_cpu_cores(2).set_task_heap_memory_mb(8).build()
    assert bare.register_slot_sharing_group(group).register_slot_sharing_group(group) is bare
    assert bare.slot_sharing_group_name("gpu") == bare.slot_sharing_group_name(group) == "gpu"
    with pytest.raises(GraphError, match="'gpu' is already registered with other resources"):
        bare.register_slot_sharing_group(other)
    with pytest.raises(TypeError, match=r"^slot_sharing_group\(\) .* the group is 5 of type int"):
        bare.slot_sharing_group_name(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setter", "value", "error"),
    [
        ("set_parallelism", 0, ValueError),
        ("set_parallelism", -1, ValueError),
        ("set_parallelism", "4", TypeError),
        ("set_max_parallelism", 0, ValueError),
        ("set_max_parallelism", 32769, ValueError),
        ("set_buffer_timeout", -2, ValueError),
        ("set_default_local_parallelism", 0, ValueError),
        ("set_runtime_mode", "BATCH", TypeError),
        ("enable_checkpointing", 0, ValueError),
        ("enable_changelog_state_backend", "yes", TypeError),
        ("set_default_savepoint_directory", None, TypeError),
        ("register_slot_sharing_group", "gpu", TypeError),
        ("configure", {"parallelism.default": "3"}, TypeError),
    ],
)
def test_setters_of_the_environment_refuse_wrong_values(
    bare: StreamExecutionEnvironment, setter: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(bare, setter)(value)
    assert bare.get_configuration().to_dict() == {}
