from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from opchain.compiler.settings.execution_config import ExecutionConfig
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import UnsupportedFeatureError

DEFAULTS: list[tuple[str, Any]] = [
    ("is_closure_cleaner_enabled", True),
    ("get_auto_watermark_interval", 200),
    ("get_latency_tracking_interval", 0),
    ("get_parallelism", 1),
    ("get_max_parallelism", -1),
    ("get_task_cancellation_interval", 30_000),
    ("get_task_cancellation_timeout", 180_000),
    ("is_force_kryo_enabled", False),
    ("has_generic_types_disabled", False),
    ("has_auto_generated_uids_enabled", True),
    ("is_force_avro_enabled", False),
    ("is_object_reuse_enabled", False),
    ("get_global_job_parameters", {}),
    ("get_default_kryo_serializer_classes", {}),
    ("get_registered_kryo_types", []),
    ("get_registered_pojo_types", []),
    ("is_use_snapshot_compression", False),
]

# What is set, with which argument, what then reads differently, and what the configuration says.
SETTERS: list[tuple[str, tuple[Any, ...], str, Any, tuple[str, str]]] = [
    (
        "disable_closure_cleaner",
        (),
        "is_closure_cleaner_enabled",
        False,
        ("pipeline.closure-cleaner-level", "NONE"),
    ),
    (
        "enable_closure_cleaner",
        (),
        "is_closure_cleaner_enabled",
        True,
        ("pipeline.closure-cleaner-level", "RECURSIVE"),
    ),
    (
        "set_auto_watermark_interval",
        (50,),
        "get_auto_watermark_interval",
        50,
        ("pipeline.auto-watermark-interval", "50 ms"),
    ),
    (
        "set_latency_tracking_interval",
        (-1,),
        "get_latency_tracking_interval",
        -1,
        ("metrics.latency.interval", "-1 ms"),
    ),
    ("set_parallelism", (4,), "get_parallelism", 4, ("parallelism.default", "4")),
    ("set_parallelism", (-1,), "get_parallelism", -1, ("parallelism.default", "-1")),
    ("set_max_parallelism", (64,), "get_max_parallelism", 64, ("pipeline.max-parallelism", "64")),
    (
        "set_task_cancellation_interval",
        (5,),
        "get_task_cancellation_interval",
        5,
        ("task.cancellation.interval", "5 ms"),
    ),
    (
        "set_task_cancellation_timeout",
        (0,),
        "get_task_cancellation_timeout",
        0,
        ("task.cancellation.timeout", "0 ms"),
    ),
    (
        "disable_force_kryo",
        (),
        "is_force_kryo_enabled",
        False,
        ("pipeline.force-kryo", "false"),
    ),
    (
        "disable_generic_types",
        (),
        "has_generic_types_disabled",
        True,
        ("pipeline.generic-types", "false"),
    ),
    (
        "enable_generic_types",
        (),
        "has_generic_types_disabled",
        False,
        ("pipeline.generic-types", "true"),
    ),
    (
        "disable_auto_generated_uids",
        (),
        "has_auto_generated_uids_enabled",
        False,
        ("pipeline.auto-generate-uids", "false"),
    ),
    (
        "enable_auto_generated_uids",
        (),
        "has_auto_generated_uids_enabled",
        True,
        ("pipeline.auto-generate-uids", "true"),
    ),
    (
        "disable_force_avro",
        (),
        "is_force_avro_enabled",
        False,
        ("pipeline.force-avro", "false"),
    ),
    (
        "enable_object_reuse",
        (),
        "is_object_reuse_enabled",
        True,
        ("pipeline.object-reuse", "true"),
    ),
    (
        "disable_object_reuse",
        (),
        "is_object_reuse_enabled",
        False,
        ("pipeline.object-reuse", "false"),
    ),
    (
        "set_global_job_parameters",
        ({"a": 1, "b": "x", "c": True},),
        "get_global_job_parameters",
        {"a": "1", "b": "x", "c": "True"},
        ("pipeline.global-job-parameters", "{a: '1', b: x, c: 'True'}"),
    ),
    (
        "set_use_snapshot_compression",
        (True,),
        "is_use_snapshot_compression",
        True,
        ("execution.checkpointing.snapshot-compression", "true"),
    ),
]


@pytest.mark.parametrize(("getter", "value"), DEFAULTS)
def test_execution_config_has_flinks_defaults(getter: str, value: Any) -> None:
    assert getattr(ExecutionConfig(), getter)() == value


@pytest.mark.parametrize(("setter", "arguments", "getter", "value", "entry"), SETTERS)
def test_execution_config_setters_change_getter_and_configuration(
    setter: str, arguments: tuple[Any, ...], getter: str, value: Any, entry: tuple[str, str]
) -> None:
    config = ExecutionConfig()
    assert getattr(config, setter)(*arguments) is config
    assert getattr(config, getter)() == value
    assert config.to_configuration().to_dict() == dict([entry])


def test_every_method_of_execution_config_has_a_test_case() -> None:
    covered = {getter for getter, _ in DEFAULTS} | {case[0] for case in SETTERS}
    methods = {
        name for name in vars(ExecutionConfig) if name.split("_")[0] in _VERBS and "_" in name
    }
    assert methods - covered == {"enable_force_kryo", "enable_force_avro"}


_VERBS = {"get", "set", "is", "has", "enable", "disable"}


@pytest.mark.parametrize("method", ["enable_force_kryo", "enable_force_avro"])
def test_execution_config_refuses_methods_that_need_java(method: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"ExecutionConfig\.{method}\(\)"):
        getattr(ExecutionConfig(), method)()


@pytest.mark.parametrize(
    ("method", "value", "error"),
    [
        ("set_parallelism", 0, "must be at least 1"),
        ("set_parallelism", -3, "must be at least 1"),
        ("set_max_parallelism", 0, "must be at least 1"),
        ("set_auto_watermark_interval", -1, "must be at least 0"),
        ("set_task_cancellation_timeout", -1, "must be at least 0"),
    ],
)
def test_execution_config_refuses_numbers_out_of_range(method: str, value: int, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        getattr(ExecutionConfig(), method)(value)


@pytest.mark.parametrize("method", ["set_parallelism", "set_max_parallelism"])
@pytest.mark.parametrize("value", ["4", 4.0, True, None])
def test_execution_config_parallelism_must_be_an_int(method: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{method}.* it must be an int"):
        getattr(ExecutionConfig(), method)(value)


def test_set_parallelism_to_parallelism_unknown_changes_nothing() -> None:
    config = ExecutionConfig().set_parallelism(4)
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 4


def test_execution_config_is_a_view_of_its_configuration() -> None:
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    configuration.set_string("pipeline.auto-watermark-interval", "1 s")
    assert config.get_auto_watermark_interval() == 1_000
    config.set_parallelism(7)
    assert configuration.get_integer("parallelism.default", 0) == 7


def test_to_configuration_returns_a_copy() -> None:
    config = ExecutionConfig()
    config.to_configuration().set_integer("parallelism.default", 7)
    assert config.get_parallelism() == 1


def test_execution_config_configure_takes_only_its_own_keys() -> None:
    config = ExecutionConfig().set_parallelism(2)
    config.configure(
        Configuration.from_dict(
            {"pipeline.global-job-parameters.a": "1", "pipeline.object-reuse": "true", "x": "y"}
        )
    )
    assert config.get_parallelism() == 2
    assert config.is_object_reuse_enabled()
    assert config.get_global_job_parameters() == {"a": "1"}
    assert not config.to_configuration().contains_key("x")


def test_get_global_job_parameters_returns_a_copy() -> None:
    config = ExecutionConfig().set_global_job_parameters({"a": "1"})
    config.get_global_job_parameters()["b"] = "2"
    assert config.get_global_job_parameters() == {"a": "1"}


def test_execution_configs_compare_by_their_settings() -> None:
    left, right = ExecutionConfig().set_parallelism(2), ExecutionConfig().set_parallelism(2)
    assert left == right
    assert hash(left) == hash(right)
    assert hash(left.set_parallelism(11)) != hash(right.set_parallelism(12))
    assert left != ExecutionConfig()
    assert pickle.loads(pickle.dumps(left)) == left


def test_execution_config_imports_neither_networkx_nor_pydantic() -> None:
    modules = (
        "opchain.compiler.settings.execution_config, opchain.compiler.settings.restart_strategy"
    )
    program = f"import sys, {modules}; print({{'networkx', 'pydantic'}} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert printed.stdout.strip() == "set()"


def test_job_parameters_must_be_a_mapping() -> None:
    message = r"set_global_job_parameters\(3\): it must be a dictionary"
    with pytest.raises(TypeError, match=message):
        ExecutionConfig().set_global_job_parameters(3)  # type: ignore[arg-type]
