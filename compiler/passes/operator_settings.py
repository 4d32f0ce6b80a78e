"""Settings of single operators that come from the configuration, not from the program: `counts.parallelism = 8`."""

from __future__ import annotations

from copy import copy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import StreamGraphError
from opchain.compiler.graph.transformation import (
    ChainingStrategy,
    OperatorTransformation,
    SinkTransformation,
    Transformation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_CHAINING = {
    "always": ChainingStrategy.ALWAYS,
    "head": ChainingStrategy.HEAD,
    "never": ChainingStrategy.NEVER,
}


def operator_settings(
    transformations: Sequence[Transformation], settings: Mapping[str, str]
) -> dict[Transformation, dict[str, str]]:
    """Which operator gets which settings.

    Args:
        transformations: All of the program.
        settings: Values by `OPERATOR.SETTING`; OPERATOR is a uid or a name.

    Raises:
        StreamGraphError: No operator or more than one has the name, or there is no such setting.
    """
    found: dict[Transformation, dict[str, str]] = {}
    if not settings:
        return found
    operators = [
        item
        for item in transformations
        if isinstance(item, (OperatorTransformation, SinkTransformation))
    ]
    for key, value in settings.items():
        name, _, setting = key.rpartition(".")
        if setting not in _SETTERS:
            raise StreamGraphError(
                f"operator setting {key} = {value}: there is no setting '{setting}'; there are "
                f"{', '.join(_SETTERS)}"
            )
        found.setdefault(_operator(operators, name, f"{key} = {value}"), {})[setting] = value
    return found


def with_settings(transformation: Transformation, settings: Mapping[str, str]) -> Transformation:
    """A copy with the settings; the user's own stays as it was drawn.

    Raises:
        StreamGraphError: A value does not fit.
    """
    if not settings:
        return transformation
    changed = copy(transformation)
    for setting, value in settings.items():
        _apply(changed, setting, value)
    return changed


def _apply(operator: Transformation, setting: str, value: str) -> None:
    try:
        _SETTERS[setting](operator, value)
    except (ValueError, KeyError) as error:
        expected = "always, head or never" if setting == "chaining" else "a number"
        raise StreamGraphError(
            f"'{operator.name}' ({operator.call_site}): the operator setting {setting} is {value!r}; it must be "
            f"{expected}"
        ) from error


def _operator(operators: Sequence[Transformation], name: str, setting: str) -> Transformation:
    by_uid = [operator for operator in operators if operator.uid == name]
    found = by_uid or [operator for operator in operators if operator.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(str(operator.call_site) for operator in found)
        raise StreamGraphError(
            f"operator setting {setting}: {len(found)} operators are named '{name}' ({places}); give the operator a "
            "uid in the program, and use that"
        )
    names = sorted({operator.uid or operator.name for operator in operators})
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}"
    raise StreamGraphError(
        f"operator setting {setting}: no operator has the uid or the name '{name}'; {hint}"
    )


def _set_parallelism(operator: Any, value: str) -> None:
    operator.set_parallelism(int(value))


def _set_max_parallelism(operator: Any, value: str) -> None:
    operator.set_max_parallelism(int(value))


def _set_name(operator: Any, value: str) -> None:
    operator.name = value


def _set_uid(operator: Any, value: str) -> None:
    operator.uid = value


def _set_chaining(operator: Any, value: str) -> None:
    operator.chaining_strategy = _CHAINING[value.lower()]


def _set_buffer_timeout(operator: Any, value: str) -> None:
    timeout = int(value)
    if timeout < -1:
        raise ValueError(value)
    operator.buffer_timeout = timeout


def _set_slot_sharing_group(operator: Any, value: str) -> None:
    operator.slot_sharing_group = value


_SETTERS: dict[str, Callable[[Any, str], None]] = {
    "parallelism": _set_parallelism,
    "max-parallelism": _set_max_parallelism,
    "name": _set_name,
    "uid": _set_uid,
    "chaining": _set_chaining,
    "buffer-timeout": _set_buffer_timeout,
    "slot-sharing-group": _set_slot_sharing_group,
}
