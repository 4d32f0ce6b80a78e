from __future__ import annotations

import re

import pytest

from opchain.common import Configuration
from opchain.compiler.settings.job_settings import JobSettings
from opchain.compiler.settings.settings_reader import key_of, known_keys, read_settings


def test_an_empty_configuration_gives_the_default_settings() -> None:
    assert read_settings(Configuration()) == JobSettings()


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("pipeline.name", "words", "job_name", "words"),
        ("parallelism.default", "3", "parallelism", 3),
        ("parallelism.default", "-1", "parallelism", 1),
        ("pipeline.max-parallelism", "64", "max_parallelism", 64),
        ("execution.runtime-mode", "batch", "runtime_mode", "BATCH"),
        ("pipeline.operator-chaining.enabled", "false", "chaining_enabled", False),
        ("pipeline.operator-chaining", "false", "chaining_enabled", False),
        ("jobmanager.scheduler", "adaptivebatch", "scheduler", "AdaptiveBatch"),
        (
            "execution.batch-shuffle-mode",
            "all_exchanges_pipelined",
            "batch_shuffle_mode",
            "ALL_EXCHANGES_PIPELINED",
        ),
        ("execution.buffer-timeout.interval", "2 s", "buffer_timeout_ms", 2000),
        ("execution.buffer-timeout.enabled", "false", "buffer_timeout_ms", -1),
        ("pipeline.auto-watermark-interval", "1 min", "auto_watermark_interval_ms", 60000),
        ("pipeline.global-job-parameters", "a:1,b:2", "job_parameters", {"a": "1", "b": "2"}),
    ],
)
def test_each_key_sets_its_field_of_the_settings(
    key: str, text: str, field: str, value: object
) -> None:
    settings = read_settings(Configuration.from_dict({key: text}))
    assert settings == JobSettings().model_copy(update={field: value})


def test_read_settings_takes_typed_values() -> None:
    configuration = Configuration().set_integer("parallelism.default", 3)
    configuration.set_boolean("pipeline.object-reuse", value=True)
    settings = read_settings(configuration)
    assert (settings.parallelism, settings.object_reuse) == (3, True)


def test_read_settings_ignores_other_keys() -> None:
    assert read_settings(Configuration.from_dict({"my.key": "x"})) == JobSettings()


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("parallelism.default", "four", "four"),
        ("parallelism.default", "0", "is 0: input should be greater than or equal to 1"),
        ("pipeline.max-parallelism", "32769", "is 32769: input should be less than"),
        ("execution.runtime-mode", "BATCHED", "is not one of STREAMING, BATCH, AUTOMATIC"),
        ("pipeline.object-reuse", "maybe", "maybe"),
        ("pipeline.auto-watermark-interval", "soon", "soon"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_its_key(key: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"configuration key '{key}'.*{reason}"):
        read_settings(Configuration.from_dict({key: text}))


def test_every_field_of_the_settings_has_its_own_key() -> None:
    keys = [key_of(field) for field in JobSettings.model_fields]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("opchain.streaming.record-epoch", "did you mean 'opchain.streaming.record-epochs'?"),
        ("opchain.zzzzzzzz", "'opchain config ls' lists the keys"),
    ],
)
def test_unknown_keys_of_opchain_are_refused_with_a_suggestion(key: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"'{key}' is unknown; {hint}")):
        read_settings(Configuration.from_dict({key: "true"}))


def test_known_keys_include_deprecated_names() -> None:
    assert {"state.backend", "state.backend.type", "opchain.batch-size"} <= known_keys()
