"""What generated code needs to run on numpy arrays (compiler/codegen/rules/use_arrays.py); numpy is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def numbers_of() -> Callable[[Sequence[Any]], Any]:
    """A function that makes an array of a batch of a number sequence; None for others, and without numpy."""
    try:
        import numpy as np  # noqa: PLC0415 - it may be missing
    except ImportError:
        return lambda _values: None

    make: Any = np.arange

    def numbers(values: Sequence[Any]) -> Any:
        if not isinstance(values, range):
            return None
        return make(values.start, values.stop, values.step, np.int64)

    return numbers


def interleaved(*arrays: Any) -> Any:
    """The first entries of all arrays, then the second ones, and so on."""
    import numpy as np  # noqa: PLC0415 - it may be missing

    return np.stack(arrays, 1).ravel()


def has_plain(owner: Any, added: tuple[str, ...], read: tuple[str, ...]) -> bool:
    """Whether attributes of an object are just stored in it, and those that are added to are ints.

    >>> class Tally: ...
    >>> tally = Tally()
    >>> tally.count, tally.step = 0, None
    >>> has_plain(tally, ("count",), ("step",)), has_plain(tally, ("step",), ())
    (True, False)
    """
    kind: Any = type(owner)
    if kind.__setattr__ is not object.__setattr__ or kind.__getattribute__ is not (
        object.__getattribute__
    ):
        return False
    stored = getattr(owner, "__dict__", {})
    if not all(name in stored and not hasattr(kind, name) for name in (*added, *read)):
        return False
    return all(type(stored[name]) is int for name in added)
