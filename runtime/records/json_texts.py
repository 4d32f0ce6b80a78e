"""Parses JSON as `json.loads` does, by msgspec if it is installed.

msgspec is as strict as `json.loads`, and every value that it gives is equal (tests/runtime/formats/test_fast_json.py).
Text that msgspec refuses is parsed by `json.loads`, which accepts some of it: NaN, lone surrogates, numbers that
overflow. A text of 70 bytes takes 1.7 microseconds with `json.loads`, 0.4 with msgspec, and 0.2 for three of its
fields.
"""

from __future__ import annotations

import json
import sys
from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_DIGITS = getattr(sys, "get_int_max_str_digits", lambda: 0)() or sys.maxsize
"""In a longer text there may be an int that `json.loads` refuses as too long."""


@cache
def fast_loads() -> Callable[[Any], Any]:
    """A function that returns the same as `json.loads` with one argument."""
    try:
        import msgspec  # noqa: PLC0415 - it may be missing
    except ImportError:
        return json.loads
    decode = msgspec.json.Decoder().decode
    malformed = msgspec.DecodeError

    def loads(text: Any) -> Any:
        if text.__class__ is str and len(text) <= _MOST_DIGITS:
            try:
                return decode(text)
            except (malformed, UnicodeError, RecursionError):
                pass  # json.loads decides
        return json.loads(text)

    return loads


class JsonFields:
    """Reads some fields of texts of JSON objects, a batch at a time.

    Args:
        fields: The names of the fields, and their default in a tuple, empty where a field must be there.
        has_no_others: Whether an object with another field is in doubt.
    """

    def __init__(
        self, fields: Sequence[tuple[str, tuple[Any, ...]]], *, has_no_others: bool = False
    ) -> None:
        self._fields = fields
        self._known = {name for name, _ in fields} if has_no_others else None
        self._decode: Callable[[str], Any] | None = None
        names = [f"field_{number}" for number in range(len(fields))]
        kind: Any = namedtuple("Fields", names)  # type: ignore[misc]  # noqa: PYI024 - of any fields
        self._make = kind._make
        try:
            import msgspec  # noqa: PLC0415 - it may be missing
        except ImportError:
            return
        ordered = sorted(enumerate(fields), key=lambda item: len(item[1][1]))
        try:
            struct = msgspec.defstruct(
                "Fields",
                [(f"field_{number}", Any, *default) for number, (_, default) in ordered],
                rename={f"field_{number}": name for number, (name, _) in enumerate(fields)},
                gc=False,
                forbid_unknown_fields=has_no_others,
                module=__name__,
            )
        except ValueError:
            return  # msgspec takes no names with quotes, backslashes or control characters
        self._decode = msgspec.json.Decoder(struct).decode
        self._refused = (msgspec.DecodeError, UnicodeError, RecursionError)

    def read(self, texts: Sequence[Any]) -> list[Any] | None:
        """An object for each text, with attributes `field_0`, `field_1`, ...; None where any text is in doubt."""
        decode = self._decode
        if decode is None:
            return self._read_dictionaries(texts)
        if not texts or max(map(len, texts)) > _MOST_DIGITS:
            return None
        try:
            return list(map(decode, texts))
        except self._refused:
            return None

    def _read_dictionaries(self, texts: Sequence[Any]) -> list[Any] | None:
        """The same without msgspec. A fallback would copy each dictionary."""
        if not self._fields:
            return None  # to check the texts, and to parse them again where they are sent, would take twice the time
        try:
            found = list(map(json.loads, texts))
            if any(each.__class__ is not dict for each in found):
                return None
            if self._known is not None and not all(map(self._known.issuperset, found)):
                return None
            columns = [
                [each.get(name, *default) if default else each[name] for each in found]
                for name, default in self._fields
            ]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return list(map(self._make, zip(*columns, strict=True)))


def are_fields(found: Any) -> bool:
    """Whether an object is one that `JsonFields` gives."""
    kind = type(found)
    return kind.__name__ == "Fields" and kind.__module__ == __name__
