"""Reads and checks the texts of a Configuration: Configuration -> JobSettings."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import ValidationError

from opchain.compiler.settings import pipeline_options
from opchain.compiler.settings.job_settings import JobSettings
from opchain.runtime.configuration.options import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    MAP,
    STRING,
    ConfigOption,
)
from opchain.runtime.configuration.options import ValueType as OfType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.fields import FieldInfo

    from opchain.runtime.configuration.configuration import Configuration


_FALLBACK_KEYS = {
    **{
        option.key: option.fallback_keys
        for option in (pipeline_options.OPERATOR_CHAINING, pipeline_options.BUFFER_TIMEOUT)
    },
    "execution.checkpointing.dir": ("state.checkpoints.dir",),
    "execution.checkpointing.num-retained": ("state.checkpoints.num-retained",),
    "state.backend.type": ("state.backend",),
    "restart-strategy.type": ("restart-strategy",),
    "execution.checkpointing.savepoint-dir": ("state.savepoints.dir",),
    "execution.state-recovery.path": ("execution.savepoint.path",),
    "execution.state-recovery.ignore-unclaimed-state": (
        "execution.savepoint.ignore-unclaimed-state",
    ),
}
_PARALLELISM_DEFAULT = -1
_OWN = "opchain."
OPERATOR_PREFIX = "opchain.operator."
"""How the keys of settings of single operators begin."""


def read_settings(configuration: Configuration) -> JobSettings:
    """The settings that a configuration gives; fields whose key it lacks have their defaults.

    Keys that no field names are left alone, unless they begin as the project's own do.

    Raises:
        ValueError: A value does not fit, or a key is a misspelt one of opchain; the message names key and value.
    """
    _check_own_keys(configuration.key_set())
    values: dict[str, Any] = {}
    for name, field in JobSettings.model_fields.items():
        option = _option(name, field)
        if configuration.contains(option):
            value = configuration.get(option)
            values[name] = value.to_millis() if option.value_type is DURATION else value
    if values.get("parallelism") == _PARALLELISM_DEFAULT:  # Flink's word for "not set"
        del values["parallelism"]
    if not configuration.get(pipeline_options.BUFFER_TIMEOUT_ENABLED):
        values["buffer_timeout_ms"] = -1
    try:
        return JobSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise ValueError(
            f"configuration key {key_of(name)!r} is {first['input']!r}: {first['msg'].lower()}"
        ) from error


@cache
def known_keys() -> frozenset[str]:
    """The keys that fields of JobSettings are set by, the older names of some included."""
    keys = {key_of(name) for name in JobSettings.model_fields}
    return frozenset(
        keys.union(*_FALLBACK_KEYS.values(), [pipeline_options.BUFFER_TIMEOUT_ENABLED.key])
    )


def _check_own_keys(keys: Iterable[str]) -> None:
    # Flink's keys are many, and most mean nothing here; nobody but opchain reads these.
    known = known_keys()
    for key in sorted(keys):
        if key.startswith(_OWN) and key not in known and not key.startswith(OPERATOR_PREFIX):
            own = [name for name in sorted(known) if name.startswith(_OWN)]
            close = get_close_matches(key, own, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(own)}"
            raise ValueError(f"configuration key {key!r} is unknown to opchain; {hint}")


def key_of(field_name: str) -> str:
    """The configuration key of a field of JobSettings."""
    extra = JobSettings.model_fields[field_name].json_schema_extra
    assert isinstance(extra, dict), f"JobSettings.{field_name} names no configuration key"
    return str(extra["key"])


def _option(name: str, field: FieldInfo) -> ConfigOption[Any]:
    key = key_of(name)
    return ConfigOption(key, _value_type(name, field), fallback_keys=_FALLBACK_KEYS.get(key, ()))


def _value_type(name: str, field: FieldInfo) -> OfType[Any]:
    choices = _choices(field.annotation)
    if choices:
        return OfType("known value", _OneOf(choices))
    if field.annotation is bool:
        return BOOLEAN
    if field.annotation is float:
        return DOUBLE
    if field.annotation is int:
        return DURATION if name.endswith("_ms") else INT
    return MAP if get_origin(field.annotation) is dict else STRING


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    for part in get_args(annotation):
        if get_origin(part) is Literal:
            return get_args(part)
    return ()


class _OneOf:
    """A choice by its name in any case, as Flink reads enums."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self._by_name = {choice.upper(): choice for choice in choices}

    def __call__(self, value: Any) -> str:
        chosen = self._by_name.get(str(getattr(value, "name", value)).upper())
        if chosen is None:
            raise ValueError(f"{value!r} is not one of {', '.join(self._by_name.values())}")
        return chosen
