"""Chooses the channel of each record of a batch in a keyed exchange.

The choice depends on the key alone. It does not depend on the batch, on earlier keys, on numpy, or on the process.
There are three ways to compute it:

- With numpy, a batch whose keys have one class that `vector_hash` has a rule for is hashed at once.
- Small batches, where the fixed costs of numpy are too high, and classes without a rule, use a cache per class as long
  as keys repeat. In Python 1, True and 1.0 are equal, so a cache has keys of exactly one class. Only classes whose
  equal values have equal hash codes are cached. These are not cached: float (0.0 and -0.0), Decimal (1.0 and 1.00),
  datetime (`==` ignores `fold`), time, and classes that contain other values, such as tuples.
- All other keys are hashed one by one.
"""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from array import array
from typing import TYPE_CHECKING, Any, cast

from opchain.runtime.records.arrays import listed
from opchain.runtime.state.keys.java_hash import Hasher, java_hash_code
from opchain.runtime.state.keys.key_groups import check_parallelism, murmur_hash
from opchain.runtime.state.keys.vector_hash import VectorHash, vector_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SMALLEST_VECTOR = 16
"""With this many keys or more, numpy with its fixed cost (20 microseconds a batch) is faster than a loop."""

_EQUAL_MEANS_SAME_CODE = (int, bool, str, bytes, dt.date, dt.timedelta, uuid.UUID)

# With this many keys or more, numpy is used even if keys repeat. A look-up in the cache takes 50 ns. In batches of 1,000
# keys, numpy takes 40 ns for an int and 55 ns for a string of 11 chars, and less in larger batches.
_VECTOR_BEATS_CACHE = {int: _SMALLEST_VECTOR, bool: _SMALLEST_VECTOR, str: 256, bytes: 256}

_CACHE_LIMIT = 1 << 15
_REST_BATCHES = 32


class KeyRouter:
    """Numbers the keys of a keyed exchange, batch by batch.

    >>> KeyRouter(max_parallelism=128, parallelism=4).route(["hello", 42, (1, None)])
    [1, 0, 3]

    Args:
        max_parallelism: Number of key groups.
        parallelism: Number of parallel instances that receive the records.
        hasher: The hash function of the declared key type, if there is one. Its result may only depend on
            class and value of the key.

    Raises:
        ValueError: If the parallelisms are out of bounds.
    """

    def __init__(
        self, max_parallelism: int, parallelism: int, hasher: Hasher | None = None
    ) -> None:
        check_parallelism(parallelism, max_parallelism)
        hasher = hasher or java_hash_code
        try:
            vector = vector_hash()
        except ImportError:
            vector = None
        self._channels = _Numbering(max_parallelism, parallelism, hasher, vector)
        # With an instance for each key group, the index of the instance is the key group.
        self._key_groups = _Numbering(max_parallelism, max_parallelism, hasher, vector)

    def route(self, keys: Sequence[Any]) -> list[int]:
        """The channel of each key: the index of the parallel instance that owns its key group.

        Raises:
            KeyTypeError: If a key has no stable hash, or is not of the declared type.
        """
        return listed(self.channels(keys))

    def channels(self, keys: Sequence[Any]) -> Sequence[int]:
        """As `route`, but a numpy array if numpy has computed the channels."""
        return self._channels.of(keys)

    def key_groups_of(self, keys: list[Any]) -> Sequence[int]:
        """The key group of each key.

        Raises:
            KeyTypeError: As `route` does.
        """
        return listed(self._key_groups.of(keys))


class _Numbering:
    """Maps keys to numbers (channels or key groups), with a cache for each class of keys."""

    def __init__(
        self, max_parallelism: int, parallelism: int, hasher: Hasher, vector: VectorHash | None
    ) -> None:
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._hasher = hasher
        self._vector = vector
        self._vector_beats_cache = {
            kind: size
            for kind, size in _VECTOR_BEATS_CACHE.items()
            if vector is not None and vector.rule(kind, hasher) is not None
        }
        self._caches: dict[type, _Cache] = {
            kind: _Cache(rests=kind in self._vector_beats_cache) for kind in _EQUAL_MEANS_SAME_CODE
        }

    def of(self, keys: Sequence[Any]) -> Sequence[int]:
        """The number of each key."""
        kinds = {int} if isinstance(keys, array) else set(map(type, keys))
        if len(kinds) != 1:
            return self._compute(None, keys)
        kind = kinds.pop()
        cache = self._caches.get(kind)
        if cache is None or len(keys) >= self._vector_beats_cache.get(kind, sys.maxsize):
            return self._compute(kind, keys)
        return cache.look_up(keys, lambda keys: listed(self._compute(kind, keys)))

    def _compute(self, kind: type | None, keys: Sequence[Any]) -> Sequence[int]:
        """The number of each key, without a cache. `kind` is the class of all keys, or None if they differ."""
        groups, parallelism = self._max_parallelism, self._parallelism
        vector, hasher = self._vector, self._hasher
        if vector is None or len(keys) < _SMALLEST_VECTOR:
            return [murmur_hash(hasher(key)) % groups * parallelism // groups for key in keys]
        codes = (
            vector.codes(keys, hasher)
            if kind is None
            else vector.codes_of_class(kind, keys, hasher)
        )
        return cast("Sequence[int]", vector.operator_indexes(codes, groups, parallelism))


class _Cache:
    """A cache of numbers by key.

    With `rests`, the cache is skipped for some batches after a batch with mostly new keys. That pays if numpy computes
    the numbers. Without numpy, computing a number takes 20 times as long as a look-up.
    """

    def __init__(self, *, rests: bool) -> None:
        self._numbers: dict[Any, int] = {}
        self._rest_batches = _REST_BATCHES if rests else 0
        self._rest = 0

    def look_up(
        self, keys: Sequence[Any], compute: Callable[[Sequence[Any]], list[int]]
    ) -> list[int]:
        """The number of each key. Numbers that are not in the cache are computed in one batch."""
        if self._rest:
            self._rest -= 1
            return compute(keys)
        numbers = list(map(self._numbers.get, keys))
        new = numbers.count(None)
        if 2 * new > len(keys):
            self._rest = self._rest_batches if self._numbers else 0
            computed = compute(keys)
            self._remember(keys, computed)
            return computed
        if new:
            places = list(_places_of_none(numbers, new))
            new_keys = [keys[place] for place in places]
            computed = compute(new_keys)
            self._remember(new_keys, computed)
            for place, number in zip(places, computed, strict=True):
                numbers[place] = number
        return cast("list[int]", numbers)

    def _remember(self, keys: Sequence[Any], numbers: list[int]) -> None:
        if len(self._numbers) + len(keys) > _CACHE_LIMIT:
            self._numbers.clear()
        self._numbers.update(zip(keys[:_CACHE_LIMIT], numbers, strict=False))


def _places_of_none(values: list[int | None], count: int) -> Iterator[int]:
    place = -1
    for _ in range(count):
        # Three times as fast as a loop that compares, because few values are None.
        place = values.index(None, place + 1)
        yield place
