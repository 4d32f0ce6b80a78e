"""What may have changed in keyed state since the last snapshot: keys, and keys in namespaces.

Operators write to the dictionaries of a table directly, so a change can't be noted where it is written. What
is noted is where a change is possible at all:

- Without a namespace (VOID), under the keys that were touched: selected, or given to `touch`.
- In a namespace, under the key that was selected when an operator went to the namespace. There can be
  as many namespaces as keys (sessions), so asking each for each touched key is no way.
- An operator that keeps the dictionaries of a few namespaces at hand says which (`written_to`), and
  every touched key counts in each of them. Such a namespace may be dropped as a whole (`dropped`).

All are dictionaries, so that what is written follows from the order of events alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    Keys = dict[Any, None]


class TouchedNamespaces:
    """The namespaces of one table, but VOID.

    `pairs` has the keys that were selected in each. `written_to` are those in which every touched key
    counts. `dropped` has, for each that was dropped whole, the key groups that it held.
    """

    __slots__ = ("dropped", "pairs", "written_to")

    def __init__(self) -> None:
        self.pairs: dict[Any, Keys] = {}
        self.written_to: Keys = {}
        self.dropped: dict[Any, dict[int, None]] = {}

    def note(self, namespace: Any, state_key: Any) -> None:
        """An operator went to a namespace, under a key."""
        keys = self.pairs.get(namespace)
        if keys is None:
            self.pairs[namespace] = {state_key: None}
        else:
            keys[state_key] = None

    def note_dropped(self, namespace: Any, key_groups: Iterable[int]) -> None:
        """A namespace was dropped with all keys that it held."""
        self.dropped.setdefault(namespace, {}).update(dict.fromkeys(key_groups))

    def clear(self) -> None:
        """Starts anew."""
        self.pairs.clear()
        self.written_to.clear()
        self.dropped.clear()


def newest(entries: Any, touched: dict[Any, Any]) -> list[Any]:
    """The keys at the end of a dictionary that were touched, in order.

    A dictionary keeps the place of a key whose value is replaced, and puts a new one last. So what came
    in since the last snapshot, all of it touched, is at the end, and is found without going over the
    rest. Keys in front of it that were touched, too, are in the result where nothing lies between:
    putting all of the result last again, in this order, gives the same dictionary.
    """
    found = []
    for key in reversed(entries):
        if key not in touched:
            break
        found.append(key)
    found.reverse()
    return found
