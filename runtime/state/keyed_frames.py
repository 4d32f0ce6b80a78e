"""Bytes of keyed state or timers of a key group: one snapshot, and the changes behind it.

The bytes are *frames*, pickles one behind the other: a whole snapshot or nothing, then changes in order.
So changes are put behind a snapshot, by whoever stores them, without unpickling either. The first item
of a frame is the format: WHOLE or CHANGES. The second of CHANGES is a number, by which the frames of
different key groups are put in order; a whole snapshot has number 0, as it is the first.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opchain.runtime.state.key_groups import KeyGroupRange

    Frame = tuple[Any, ...]

WHOLE = 1
CHANGES = 2


def in_order(
    snapshots: Iterable[Mapping[int, bytes]], key_groups: KeyGroupRange, what: str, where: str
) -> list[tuple[int, list[tuple[int, Frame]]]]:
    """The frames of some key groups: (number, [(key group, frame)]), by number and then by key group.

    Args:
        snapshots: Bytes by key group.
        key_groups: Those that are read.
        what: What the bytes are, for messages.
        where: The operator and its call site, for messages.

    Raises:
        StateError: The bytes can't be read, or are of another format.
    """
    found: dict[int, list[tuple[int, Frame]]] = {}
    for snapshot in snapshots:
        for group, data in snapshot.items():
            if group not in key_groups:
                continue
            for frame in _frames(data, what, where):
                number = 0 if frame[0] == WHOLE else frame[1]
                found.setdefault(number, []).append((group, frame))
    return [(number, sorted(found[number], key=_key_group)) for number in sorted(found)]


def _key_group(item: tuple[int, Frame]) -> int:
    return item[0]


def _frames(data: bytes, what: str, where: str) -> Iterator[Frame]:
    if not data:
        raise StateError(f"{where}: {what} can't be read: there are no bytes")
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        start = stream.tell()
        reader = NotingUnpickler(stream)
        try:
            frame = reader.load()
        except Exception as error:  # noqa: BLE001 - a user's class may raise anything
            _refuse(data[start:], error, reader.last, what, where)
        version = frame[0] if isinstance(frame, tuple) and frame else frame
        if version not in (WHOLE, CHANGES) or version is frame:
            raise StateError(
                f"{where}: {what} has format {version!r}, and this version of opchain reads formats "
                f"{WHOLE} and {CHANGES}"
            )
        yield frame


class NotingUnpickler(pickle.Unpickler):
    """Remembers the class that it looked up last."""

    last: str | None = None

    def find_class(self, module: str, name: str) -> Any:
        """Looks a class or function up."""
        self.last = f"{module}.{name}"
        return super().find_class(module, name)


class _Unreadable:
    """Stands for all objects of a class that can't be read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes whatever the class would."""

    def __setstate__(self, state: Any) -> None:
        """Takes whatever the class would."""

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> NoReturn:
        raise _FoundError


class _FoundError(Exception):
    """An unreadable object is in what is pickled."""


class _PartialReader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, unreadable: str) -> None:
        super().__init__(stream)
        self._unreadable = unreadable

    def find_class(self, module: str, name: str) -> Any:
        """Looks up all classes but one."""
        return (
            _Unreadable
            if f"{module}.{name}" == self._unreadable
            else super().find_class(module, name)
        )


def _refuse(
    data: bytes, error: Exception, last_class: str | None, what: str, where: str
) -> NoReturn:
    problem = f"{type(error).__name__}: {error}"
    if last_class is None:
        raise StateError(f"{where}: {what} can't be read: {problem}") from error
    state = _guarded(lambda: _state_with(data, last_class))
    of_state = "" if state is None else f" of state '{state}'"
    raise StateError(
        f"{where}: {what} can't be read: objects{of_state} are of the class {last_class}, which "
        f"can't be loaded as it was saved ({problem}); keep the class where it was, able to read what "
        "it saved, or keep plain values in state"
    ) from error


def _state_with(data: bytes, unreadable: str) -> str | None:
    """The name of the state that holds objects of a class."""
    frame = _PartialReader(io.BytesIO(data), unreadable).load()
    return next((str(name) for name, held in frame[-1].items() if _has_unreadable(held)), None)


def _has_unreadable(contents: Any) -> bool:
    try:
        pickle.dumps(contents)
    except _FoundError:
        return True
    return False


def _guarded(search: Callable[[], str | None]) -> str | None:
    try:
        return search()
    except Exception:  # noqa: BLE001 - the search is for a better message; the error itself is raised anyway
        return None
