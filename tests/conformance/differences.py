"""The differences between Flink's result and ours, each with its path, such as `vertices[2].name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_ABSENT = "nothing"


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """One line per difference; a field that only one side has is one too."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            below = f"{path}.{key}" if path else str(key)
            if key in expected and key in found:
                yield from differences(expected[key], found[key], below)
            else:
                yield _line(below, expected.get(key, _ABSENT), found.get(key, _ABSENT))
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield _line(f"len({path})", len(expected), len(found))
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif type(expected) is not type(found) or expected != found:
        yield _line(path, expected, found)


def _line(path: str, expected: Any, found: Any) -> str:
    return f"{path}: expected {expected!r}, found {found!r}"
