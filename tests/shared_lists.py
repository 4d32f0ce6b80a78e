"""Lists that stay the same object if a function with a reference to them is pickled and unpickled in this process."""

from __future__ import annotations

import weakref
from typing import Any


class SharedList(list[Any]):
    """Tests read what functions append to it."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        _LISTS[id(self)] = self
        return shared, (id(self),)


_LISTS: weakref.WeakValueDictionary[int, SharedList] = weakref.WeakValueDictionary()


def shared(number: int) -> SharedList:
    return _LISTS[number]
