"""Expectations were printed by Flink 2.3's CheckpointConfig, except where a test says otherwise."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from opchain.compiler.settings.checkpoint_config import CheckpointConfig, CheckpointingMode
from opchain.compiler.settings.checkpoint_config import (
    ExternalizedCheckpointRetention as Retention,
)
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.time import Duration, Time

DEFAULTS: dict[str, Any] = {
    "is_checkpointing_enabled": False,
    "get_checkpointing_mode": CheckpointingMode.AT_LEAST_ONCE,
    "get_checkpoint_interval": -1,
    "get_checkpoint_timeout": 600_000,
    "get_min_pause_between_checkpoints": 0,
    "get_max_concurrent_checkpoints": 1,
    "get_tolerable_checkpoint_failure_number": 0,
    "is_fail_on_checkpointing_errors": True,
    "get_externalized_checkpoint_retention": Retention.NO_EXTERNALIZED_CHECKPOINTS,
    "is_externalized_checkpoints_enabled": False,
    "is_unaligned_checkpoints_enabled": False,
    "is_force_unaligned_checkpoints": False,
    "get_aligned_checkpoint_timeout": Duration(0),
    "get_alignment_timeout": Duration(0),
}


@pytest.mark.parametrize(("getter", "value"), DEFAULTS.items())
def test_checkpoint_config_has_flinks_defaults(getter: str, value: Any) -> None:
    assert getattr(CheckpointConfig(), getter)() == value


# setter, argument, getter, what it gives
SET: list[tuple[str, Any, str, Any]] = [
    ("set_checkpoint_interval", 10, "get_checkpoint_interval", 10),
    ("set_checkpoint_timeout", 30_000, "get_checkpoint_timeout", 30_000),
    ("set_min_pause_between_checkpoints", 5, "get_min_pause_between_checkpoints", 5),
    ("set_max_concurrent_checkpoints", 3, "get_max_concurrent_checkpoints", 3),
    (
        "set_tolerable_checkpoint_failure_number",
        2,
        "get_tolerable_checkpoint_failure_number",
        2,
    ),
    (
        "set_fail_on_checkpointing_errors",
        False,
        "get_tolerable_checkpoint_failure_number",
        2**31 - 1,
    ),
    ("set_fail_on_checkpointing_errors", True, "is_fail_on_checkpointing_errors", True),
    (
        "set_externalized_checkpoint_retention",
        Retention.RETAIN_ON_CANCELLATION,
        "is_externalized_checkpoints_enabled",
        True,
    ),
    ("set_force_unaligned_checkpoints", True, "is_force_unaligned_checkpoints", True),
    *[
        (setter, span, getter, Duration.of_millis(1500))
        for span in (Duration.of_millis(1500), Time(1500), timedelta(seconds=1.5), 1500)
        for setter, getter in (
            ("set_aligned_checkpoint_timeout", "get_alignment_timeout"),
            ("set_alignment_timeout", "get_aligned_checkpoint_timeout"),
        )
    ],
]


@pytest.mark.parametrize(("setter", "argument", "getter", "value"), SET)
def test_checkpoint_config_setters_return_the_object_and_getters_the_value(
    setter: str, argument: Any, getter: str, value: Any
) -> None:
    config = CheckpointConfig()
    assert getattr(config, setter)(argument) is config
    assert getattr(config, getter)() == value


def test_the_mode_is_exactly_once_if_checkpoints_are_enabled() -> None:
    config = CheckpointConfig().set_checkpoint_interval(1000)
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    config.set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE).disable_checkpointing()
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert not config.is_checkpointing_enabled()


def test_the_mode_of_a_batch_job_is_at_least_once() -> None:
    configuration = Configuration().set_string("execution.runtime-mode", "batch")
    config = CheckpointConfig(configuration).set_checkpoint_interval(1000)
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE


def test_unaligned_checkpoints_need_exactly_once() -> None:
    config = CheckpointConfig().enable_unaligned_checkpoints()
    assert not config.is_unaligned_checkpoints_enabled()
    config.set_checkpoint_interval(1000)
    assert config.is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    config.enable_unaligned_checkpoints(True)
    config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert not config.is_unaligned_checkpoints_enabled()


def test_checkpoint_config_is_a_view_of_the_configuration() -> None:
    configuration = Configuration()
    config = CheckpointConfig(configuration)
    configuration.set_string("execution.checkpointing.interval", "3 min")
    configuration.set_string("execution.checkpointing.mode", "AT_LEAST_ONCE")
    assert config.get_checkpoint_interval() == 180_000
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    config.set_checkpoint_timeout(90_000)
    config.set_externalized_checkpoint_retention(Retention.DELETE_ON_CANCELLATION)
    assert configuration.to_dict() == {
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        "execution.checkpointing.interval": "3 min",
        "execution.checkpointing.mode": "AT_LEAST_ONCE",
        "execution.checkpointing.timeout": "90 s",
    }


@pytest.mark.parametrize(
    ("setter", "argument", "least"),
    [
        ("set_checkpoint_interval", 9, "10 ms"),
        ("set_checkpoint_interval", 0, "10 ms"),
        ("set_checkpoint_timeout", 9, "10 ms"),
        ("set_min_pause_between_checkpoints", -1, "0 ms"),
        ("set_max_concurrent_checkpoints", 0, "1"),
        ("set_tolerable_checkpoint_failure_number", -1, "0"),
    ],
)
def test_checkpoint_config_refuses_numbers_that_flink_refuses(
    setter: str, argument: int, least: str
) -> None:
    message = rf"CheckpointConfig.{setter}\({argument}\): it must be at least {least}$"
    with pytest.raises(ValueError, match=message):
        getattr(CheckpointConfig(), setter)(argument)


@pytest.mark.parametrize(
    ("setter", "argument", "wanted"),
    [
        ("set_checkpoint_interval", "10", "a whole number of milliseconds"),
        ("set_checkpoint_timeout", 10.5, "a whole number of milliseconds"),
        ("set_max_concurrent_checkpoints", True, "a whole number"),
        ("set_checkpointing_mode", "EXACTLY_ONCE", "CheckpointingMode"),
        ("set_externalized_checkpoint_retention", 1, "ExternalizedCheckpointRetention"),
    ],
)
def test_checkpoint_config_refuses_arguments_of_the_wrong_type(
    setter: str, argument: Any, wanted: str
) -> None:
    with pytest.raises(TypeError, match=rf"CheckpointConfig.{setter}\(\) takes {wanted}, not"):
        getattr(CheckpointConfig(), setter)(argument)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_checkpoint_folder_must_be_a_string() -> None:
    with pytest.raises(TypeError, match="takes a path or URL as a str, not 3"):
        CheckpointConfig().set_checkpoint_storage_dir(3)  # type: ignore[arg-type]
