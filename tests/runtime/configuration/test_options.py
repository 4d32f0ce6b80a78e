from __future__ import annotations

import pickle
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

from opchain.runtime.configuration.options import ConfigOption, ConfigOptions, MemorySize
from opchain.runtime.time import Duration


class Mode(Enum):
    STREAMING = 1
    BATCH = 2


BUILDER = ConfigOptions.key("some.key")

CONVERSIONS: list[tuple[ConfigOption[Any], Any, Any]] = [
    (BUILDER.boolean_type().no_default_value(), "TRUE", True),
    (BUILDER.int_type().no_default_value(), "-5", -5),
    (BUILDER.int_type().no_default_value(), 5, 5),
    (BUILDER.long_type().no_default_value(), "9223372036854775807", 2**63 - 1),
    (BUILDER.float_type().no_default_value(), "0.5", 0.5),
    (BUILDER.double_type().no_default_value(), 5, 5.0),
    (BUILDER.string_type().no_default_value(), 5, "5"),
    (BUILDER.string_type().no_default_value(), True, "true"),
    (BUILDER.duration_type().no_default_value(), "10 s", Duration.of_seconds(10)),
    (BUILDER.duration_type().no_default_value(), timedelta(minutes=1), Duration.of_minutes(1)),
    (BUILDER.memory_type().no_default_value(), "64 mb", MemorySize.of_mebi_bytes(64)),
    (BUILDER.enum_type(Mode).no_default_value(), "batch", Mode.BATCH),
    (BUILDER.enum_type(Mode).no_default_value(), Mode.BATCH, Mode.BATCH),
    (BUILDER.map_type().no_default_value(), "a:1,b:2", {"a": "1", "b": "2"}),
    (BUILDER.map_type().no_default_value(), {"a": 1}, {"a": "1"}),
    (BUILDER.int_type().as_list().no_default_value(), "1;2", [1, 2]),
    (BUILDER.string_type().as_list().no_default_value(), ["a", "b"], ["a", "b"]),
]


@pytest.mark.parametrize(("option", "value", "expected"), CONVERSIONS)
def test_an_option_type_converts_values_that_fit(
    option: ConfigOption[Any], value: Any, expected: Any
) -> None:
    converted = option.value_type.convert(value)
    assert converted == expected
    assert type(converted) is type(expected)


REFUSED: list[tuple[ConfigOption[Any], Any, str]] = [
    (BUILDER.boolean_type().no_default_value(), "yes", "'yes' is not a boolean"),
    (BUILDER.int_type().no_default_value(), 2**31, "does not fit 32 bits"),
    (BUILDER.long_type().no_default_value(), -(2**63) - 1, "does not fit 64 bits"),
    (BUILDER.long_type().no_default_value(), 1.0, "'1.0' is not a whole number"),
    (BUILDER.float_type().no_default_value(), 1e39, "does not fit single precision"),
    (BUILDER.double_type().no_default_value(), "x", "'x' is not a number"),
    (BUILDER.duration_type().no_default_value(), "10 parsec", "'parsec' is not a unit"),
    (BUILDER.memory_type().no_default_value(), "10 parsec", "is not a memory size"),
    (BUILDER.enum_type(Mode).no_default_value(), "both", "'both' is not one of STREAMING, BATCH"),
    (BUILDER.int_type().as_list().no_default_value(), "1;x", "'x' is not a whole number"),
]


@pytest.mark.parametrize(("option", "value", "error"), REFUSED)
def test_an_option_type_refuses_values_that_do_not_fit(
    option: ConfigOption[Any], value: Any, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        option.value_type.convert(value)


def test_a_default_is_checked_when_it_is_set() -> None:
    with pytest.raises(ValueError, match="does not fit 32 bits"):
        BUILDER.int_type().default_value(2**31)


def test_options_are_compared_and_hashed_by_value() -> None:
    option = ConfigOptions.key("a").enum_type(Mode).default_value(Mode.BATCH)
    assert option == ConfigOptions.key("a").enum_type(Mode).default_value(Mode.BATCH)
    assert option != ConfigOptions.key("a").enum_type(Mode).no_default_value()
    assert pickle.loads(pickle.dumps(option)) == option
    assert option.has_default_value()
    assert not BUILDER.int_type().no_default_value().has_default_value()


def test_fallback_keys_are_appended_to_existing_ones() -> None:
    option = BUILDER.int_type().default_value(1).with_fallback_keys("x").with_fallback_keys("y")
    assert option.fallback_keys == ("x", "y")
    assert option.default == 1
