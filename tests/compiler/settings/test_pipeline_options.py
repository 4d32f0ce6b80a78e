"""The keys and defaults of Flink 2.3."""

from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Configuration, Duration
from opchain.compiler.settings import pipeline_options as options
from opchain.compiler.settings.pipeline_options import ClosureCleanerLevel
from opchain.runtime.configuration.options import ConfigOption
from opchain.runtime.configuration.text import to_text

DEFAULTS = {
    "parallelism.default": "1",
    "pipeline.max-parallelism": "-1",
    "pipeline.global-job-parameters": "{}",
    "pipeline.auto-watermark-interval": "200 ms",
    "metrics.latency.interval": "0 ms",
    "pipeline.object-reuse": "false",
    "pipeline.auto-generate-uids": "true",
    "pipeline.generic-types": "true",
    "pipeline.force-kryo": "false",
    "pipeline.force-avro": "false",
    "pipeline.closure-cleaner-level": "RECURSIVE",
    "execution.checkpointing.snapshot-compression": "false",
    "task.cancellation.interval": "30 s",
    "task.cancellation.timeout": "3 min",
}


def test_pipeline_options_have_flinks_keys_and_defaults() -> None:
    printed = {option.key: to_text(option.default) for option in options.EXECUTION_CONFIG_OPTIONS}
    assert printed == DEFAULTS


ENVIRONMENT_OPTIONS: dict[ConfigOption[Any], Any] = {
    options.RUNTIME_MODE: "STREAMING",
    options.OPERATOR_CHAINING: True,
    options.CHAIN_DIFFERENT_MAX_PARALLELISM: True,
    options.BUFFER_TIMEOUT_ENABLED: True,
    options.BUFFER_TIMEOUT: Duration.of_millis(100),
    options.STATE_BACKEND: "hashmap",
    options.STATE_FOLDERS: None,
    options.CHANGELOG_ENABLED: None,
    options.SAVEPOINT_DIRECTORY: None,
}


@pytest.mark.parametrize("option", ENVIRONMENT_OPTIONS, ids=lambda option: option.key)
def test_the_defaults_of_the_environments_options_are_flinks(option: ConfigOption[Any]) -> None:
    assert Configuration().get(option) == ENVIRONMENT_OPTIONS[option]


def test_every_option_has_a_test_case() -> None:
    declared = {value.key for value in vars(options).values() if isinstance(value, ConfigOption)}
    assert declared == {*DEFAULTS, *(option.key for option in ENVIRONMENT_OPTIONS)}


@pytest.mark.parametrize("level", ClosureCleanerLevel)
def test_the_level_of_the_closure_cleaner_is_read_in_any_case(level: ClosureCleanerLevel) -> None:
    assert options.CLOSURE_CLEANER_LEVEL.value_type.convert(level.name.lower()) is level
