"""Reads and checks a Configuration, and returns JobSettings."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

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
    from collections.abc import Iterable, Iterator

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
"""The prefix of the keys of settings of single operators."""


def read_settings(configuration: Configuration) -> JobSettings:
    """The settings of a configuration. Fields without a key in it get their defaults.

    Flink's keys without a counterpart are ignored. So are a program's own keys, unless they resemble a known key.

    Raises:
        ValueError: A value is invalid, or a key is probably misspelt. The message names key and value.
    """
    _check_keys(configuration.key_set())
    values: dict[str, Any] = {}
    for name, field in JobSettings.model_fields.items():
        option = _option(name, field)
        if configuration.contains(option):
            value = configuration.get(option)
            values[name] = value.to_millis() if option.value_type is DURATION else value
    if values.get("parallelism") == _PARALLELISM_DEFAULT:  # Flink's value for "not set"
        del values["parallelism"]
    if not configuration.get(pipeline_options.BUFFER_TIMEOUT_ENABLED):
        values["buffer_timeout_ms"] = -1
    try:
        return JobSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        problem = first["msg"].lower()
        if first["type"] == "string_pattern_mismatch":
            problem = f"no such value. {JobSettings.model_fields[name].description}"
        raise ValueError(
            f"configuration key {key_of(name)!r} is {first['input']!r}: {problem}"
        ) from error


@cache
def known_keys() -> frozenset[str]:
    """The configuration keys of all fields of JobSettings, with some older spellings."""
    keys = {key_of(name) for name in JobSettings.model_fields}
    return frozenset(
        keys.union(*_FALLBACK_KEYS.values(), [pipeline_options.BUFFER_TIMEOUT_ENABLED.key])
    )


@cache
def flink_keys() -> frozenset[str]:
    """The configuration keys of Flink 2.3, with their older spellings."""
    file = resources.files(__package__) / "flink_keys.txt"  # opchain may be in a zip
    return frozenset(file.read_text("ascii").split())


PREFIXES_OF_MAPS = (
    OPERATOR_PREFIX,
    *(
        "containerized.",
        "env.java.opts.",
        "events.reporter.",
        "external-resource.",
        "flink.",
        "fs.",
    ),
    *("gs.", "kubernetes.", "metrics.reporter.", "metrics.scope.", "s3.", "security.", "traces."),
    *("yarn.", "pipeline.global-job-parameters."),
)
"""Prefixes of keys that may end in any name."""

_NEARLY_THE_SAME = 0.85
"""From this similarity to a known key (0 to 1), an unknown key counts as misspelt."""


def is_known_key(key: str) -> bool:
    """Whether opchain or Flink has this configuration key."""
    return key in known_keys() or key in flink_keys() or key.startswith(PREFIXES_OF_MAPS)


def unknown_key(key: str) -> str:
    """The message for an unknown key, with the most similar known key."""
    keys = known_keys() | flink_keys()
    close = get_close_matches(key, sorted(keys), n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"configuration key {key!r} is unknown; {hint}'opchain config ls' lists the keys"


def _check_keys(keys: Iterable[str]) -> None:
    # A program may store its own keys in a Configuration, so a key that resembles no known key is ignored.
    for key in sorted(keys):
        if is_known_key(key):
            continue
        known = sorted(known_keys() | flink_keys())
        if key.startswith(_OWN) or get_close_matches(key, known, n=1, cutoff=_NEARLY_THE_SAME):
            raise ValueError(unknown_key(key))


class SettingRow(NamedTuple):
    """A setting for people: `values` are the choices, or the name of a type."""

    key: str
    values: tuple[str, ...]
    is_choice: bool
    default: str
    description: str


def setting_rows() -> Iterator[SettingRow]:
    """Every configuration key that has an effect, in the order of JobSettings."""
    for name, field in JobSettings.model_fields.items():
        choices = ("true", "false") if field.annotation is bool else _choices(field.annotation)
        plain = {int: "integer", float: "number"}
        kind = plain.get(field.annotation, "text")  # type: ignore[arg-type]
        if get_origin(field.annotation) is dict:
            kind = "map"
        if name.endswith("_ms"):
            kind = "duration"
        is_open = field.is_required() or field.default is None
        default = "" if is_open else _default_text(name, field)
        values = choices or (kind,)
        yield SettingRow(key_of(name), values, bool(choices), default, field.description or "")


def _default_text(name: str, field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_ms") and value > 0:
        return f"{value} ms"
    return "empty" if value == {} else str(value)


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
    """Parses the name of a choice in any case, as Flink reads enums."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self._by_name = {choice.upper(): choice for choice in choices}

    def __call__(self, value: Any) -> str:
        chosen = self._by_name.get(str(getattr(value, "name", value)).upper())
        if chosen is None:
            raise ValueError(f"{value!r} is not one of {', '.join(self._by_name.values())}")
        return chosen
