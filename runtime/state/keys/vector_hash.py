"""Java hash codes and key groups of whole batches, with numpy.

The numbers equal those of java_hash.py and key_groups.py. Batches of 1,000 keys are hashed 20 to 30 times as fast. All
arithmetic is modulo 2**32 in uint32 arrays. Keys of a class without a rule are hashed one by one. The module can be
imported without numpy, which a `VectorHash` imports when it is made.

Strings are concatenated and hashed together. With weights 31**-j over the text of the batch, the hash code of a key is
the difference of two prefix sums times a power of 31. (31 is odd, so it has an inverse modulo 2**32.) A matrix of
padded strings was slower for keys of mixed length, and cannot contain NUL.
"""

# ruff: noqa: PLC0415  (numpy is optional: importing this module must not need it)

from __future__ import annotations

import functools
import itertools
from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from opchain.runtime.state.keys import java_hash
from opchain.runtime.state.keys.java_hash import (
    MASK,
    Hasher,
    hasher_of_class,
    java_hash_code,
)
from opchain.runtime.state.keys.key_hashers import (
    CheckedType,
    IntegerType,
    TupleType,
    hash_declared_double,
)
from opchain.runtime.state.keys.key_identity import all_are_plain
from opchain.runtime.state.keys.pyflink_keys import ROW_OF_ONE, RowKey, hash_pickled
from opchain.runtime.state.keys.vector_pickle import VectorPickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

    import numpy as np
    from numpy.typing import NDArray

    Codes: TypeAlias = NDArray[np.uint32]
    Rule: TypeAlias = Callable[[Sequence[Any]], Codes | None]

MOST_UNITS = 1 << 17
"""Units that are hashed at once. Each process has two tables of powers of this length, together 1 MB."""

_MURMUR_WORDS = (
    *(0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35, 0x7FFFFFFF),
    *(4, 5, 13, 15, 16, 17, 19),
)


@functools.lru_cache(maxsize=1)
def vector_hash() -> VectorHash:
    """The one instance of this process.

    Raises:
        ImportError: If numpy is not installed.
    """
    return VectorHash()


class VectorHash:
    """Hashes batches of keys.

    `powers` has the powers of 31 modulo 2**32.

    Raises:
        ImportError: If numpy is not installed.
    """

    def __init__(self) -> None:
        import numpy as np

        steps = np.full((2, MOST_UNITS), 31, np.uint32)
        steps[1] = pow(31, -1, 2**32)
        steps[:, 0] = 1
        self.powers, self._inverse_powers = np.cumprod(steps, axis=1, dtype=np.uint32)
        # Arrays that are changed in place have half the fixed cost of numpy scalars and new arrays.
        self._words = {value: np.array(value, np.uint32) for value in _MURMUR_WORDS}
        self._rules: Mapping[Hasher, Rule] = {
            java_hash.hash_bool: self._bools,
            java_hash.hash_int: self._longs,
            java_hash.hash_double: self._doubles,
            java_hash.hash_str: self._strings,
            java_hash.hash_bytes: self.of_bytes,
            java_hash.hash_tuple: self._tuples,
            java_hash.hash_list: self._lists,
        }
        self._pickled = VectorPickle(self).rules

    def codes(
        self, keys: Sequence[Any], hasher: Hasher = java_hash_code, *, nested: bool = False
    ) -> Codes:
        """The hash code of each key, as an unsigned 32-bit int.

        Args:
            keys: Keys of any classes.
            hasher: `java_hash_code`, or one from `key_hashers`, or any other.
            nested: Whether these are values inside keys, where None is allowed and has the code 0.

        Raises:
            KeyTypeError: As the hasher does.
        """
        import numpy as np

        kinds = set(map(type, keys))
        if len(kinds) == 1:
            return self.codes_of_class(kinds.pop(), keys, hasher, nested=nested)
        codes = np.empty(len(keys), np.uint32)
        kind_of_each = list(map(type, keys))
        for kind in dict.fromkeys(kind_of_each):
            places = [place for place, found in enumerate(kind_of_each) if found is kind]
            same = [keys[place] for place in places]
            codes[places] = self.codes_of_class(kind, same, hasher, nested=nested)
        return codes

    def codes_of_class(
        self, kind: type, keys: Sequence[Any], hasher: Hasher, *, nested: bool = False
    ) -> Codes:
        """As `codes`, for keys that are all of exactly this class."""
        import numpy as np

        if nested and kind is type(None):
            return np.zeros(len(keys), np.uint32)
        rule = self.rule(kind, hasher)
        codes = None if rule is None else rule(keys)
        return self._one_by_one(keys, hasher) if codes is None else codes

    def rule(self, kind: type, hasher: Hasher) -> Rule | None:  # noqa: PLR0911 - one for each kind
        """The function that hashes many keys of a class at once, or None if there is none.

        A rule returns None for a batch that contains a key which it cannot hash.
        """
        if isinstance(hasher, RowKey):
            inner = self.rule(kind, hasher.inner)
            return None if inner is None else functools.partial(self._rows_of_one, inner)
        if hasher is hash_pickled:
            pickled = self._pickled.get(kind)
            return None if pickled is None else functools.partial(self._rows_of_one, pickled)
        if hasher is java_hash_code:
            scalar = hasher_of_class(kind)
            return None if scalar is None else self._rules.get(scalar)
        if isinstance(hasher, IntegerType) and issubclass(kind, int):
            return functools.partial(self._declared_integers, hasher)
        if isinstance(hasher, TupleType) and issubclass(kind, tuple):
            return functools.partial(self._declared_tuples, hasher.fields)
        if isinstance(hasher, CheckedType) and issubclass(kind, hasher.python):
            return self._rules.get(hasher.hash)
        if hasher is hash_declared_double and issubclass(kind, float):
            return self._doubles
        return None

    def operator_indexes(self, codes: Codes, max_parallelism: int, parallelism: int) -> Codes:
        """The parallel instance that owns the key group of each hash code. Bounds are not checked."""
        import numpy as np

        word = self._words
        mixed = codes * word[0xCC9E2D51]
        shifted = mixed >> word[17]
        mixed <<= word[15]
        mixed |= shifted
        mixed *= word[0x1B873593]
        np.right_shift(mixed, word[19], out=shifted)
        mixed <<= word[13]
        mixed |= shifted
        mixed *= word[5]
        mixed += word[0xE6546B64]
        mixed ^= word[4]
        mixed ^= np.right_shift(mixed, word[16], out=shifted)
        mixed *= word[0x85EBCA6B]
        mixed ^= np.right_shift(mixed, word[13], out=shifted)
        mixed *= word[0xC2B2AE35]
        mixed ^= np.right_shift(mixed, word[16], out=shifted)
        # As in Java, the absolute value of the smallest int is negative. Without its sign it is 0, as in Flink.
        np.abs(mixed.view(np.int32), out=mixed.view(np.int32))
        mixed &= word[0x7FFFFFFF]
        mixed %= np.uint32(max_parallelism)
        mixed *= np.uint32(parallelism)
        mixed //= np.uint32(max_parallelism)
        return mixed

    def _rows_of_one(self, inner: Rule, keys: Sequence[Any]) -> Codes | None:
        import numpy as np

        codes = inner(keys)
        return None if codes is None else codes + np.uint32(ROW_OF_ONE)

    def _one_by_one(self, keys: Sequence[Any], hasher: Hasher) -> Codes:
        """Hashes equal keys only once, if Python's equality is that of Java."""
        import numpy as np

        if not all_are_plain(keys):
            return np.fromiter((hasher(key) & MASK for key in keys), np.uint32, len(keys))
        codes = {key: hasher(key) & MASK for key in dict.fromkeys(keys)}
        return np.fromiter(map(codes.__getitem__, keys), np.uint32, len(keys))

    def _bools(self, keys: Sequence[bool]) -> Codes:
        import numpy as np

        codes: Codes = np.where(np.array(keys, np.bool_), np.uint32(1231), np.uint32(1237))
        return codes

    def int64s(self, keys: Sequence[int]) -> NDArray[np.int64] | None:
        """The ints as an array; None if one has more than 64 bits."""
        import numpy as np

        if isinstance(keys, array):
            return np.frombuffer(keys, np.int64)
        try:
            return np.fromiter(keys, np.int64, len(keys))
        except OverflowError:
            return None

    def _fold(self, longs: NDArray[np.int64]) -> Codes:
        import numpy as np

        codes: Codes = (longs ^ (longs >> np.int64(32))).astype(np.uint32)
        return codes

    def _longs(self, keys: Sequence[int]) -> Codes | None:
        longs = self.int64s(keys)
        return None if longs is None else self._fold(longs)

    def _declared_integers(self, hasher: IntegerType, keys: Sequence[int]) -> Codes | None:
        import numpy as np

        longs = self.int64s(keys)
        if longs is None or hasher.bits == 64:  # noqa: PLR2004  (Long)
            return None if longs is None else self._fold(longs)
        limit = 1 << (hasher.bits - 1)
        if longs.min() < -limit or longs.max() >= limit:
            return None
        return longs.astype(np.uint32)

    def _doubles(self, keys: Sequence[float]) -> Codes:
        import numpy as np

        doubles = np.array(keys, np.float64)
        doubles[np.isnan(doubles)] = np.nan
        return self._fold(doubles.view(np.int64))

    def _strings(self, keys: Sequence[str]) -> Codes:
        import numpy as np

        text = "\0".join([*keys, ""])
        if 2 * len(text) >= MOST_UNITS:
            return self._in_halves(keys, self._strings, java_hash.hash_str)
        units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
        # The NUL after each key adds 0, and its position gives the length without a call per key.
        ends = np.flatnonzero(units == 0)
        if len(ends) != len(keys):  # some key holds a NUL of its own
            units_of_each = (len(key.encode("utf-16-le", "surrogatepass")) // 2 for key in keys)
            ends = np.cumsum(np.fromiter(units_of_each, np.int64, len(keys)) + 1) - 1
        starts = np.zeros(len(keys), np.int64)
        np.add(ends[:-1], 1, out=starts[1:])
        return self.polynomial(units, starts, ends)

    def of_bytes(self, keys: Sequence[bytes]) -> Codes:
        """`Arrays.hashCode(byte[])` of each key."""
        import numpy as np

        content = b"".join(keys)
        if len(content) >= MOST_UNITS:
            return self._in_halves(keys, self.of_bytes, java_hash.hash_bytes)
        units = np.frombuffer(content, np.int8).astype(np.int32).view(np.uint32)
        return self._polynomial_from_one(units, self.lengths(keys))

    def _lists(self, keys: Sequence[list[Any]]) -> Codes:
        lengths = self.lengths(keys)
        if lengths.sum() >= MOST_UNITS:
            return self._in_halves(keys, self._lists, java_hash.hash_list)
        elements = self.codes(list(itertools.chain.from_iterable(keys)), nested=True)
        return self._polynomial_from_one(elements, lengths)

    def _tuples(self, keys: Sequence[tuple[Any, ...]]) -> Codes | None:
        if len(set(map(len, keys))) != 1:
            return None
        return self._columns(keys, itertools.repeat(java_hash_code))

    def _declared_tuples(
        self, hashers: tuple[Hasher, ...], keys: Sequence[tuple[Any, ...]]
    ) -> Codes | None:
        if set(map(len, keys)) != {len(hashers)}:
            return None
        return self._columns(keys, hashers)

    def _columns(self, keys: Sequence[tuple[Any, ...]], hashers: Iterable[Hasher]) -> Codes:
        """Codes of tuples of one length, one field after the other, because a column is mostly of one class."""
        import numpy as np

        codes = np.zeros(len(keys), np.uint32)
        for place, hasher in zip(range(len(keys[0])), hashers, strict=False):
            # zip(*keys) is three times as slow, because of its iterator per key.
            column = list(map(itemgetter(place), keys))
            codes = np.uint32(31) * codes + self.codes(column, hasher, nested=True)
        return codes

    def lengths(self, keys: Sequence[Sized]) -> NDArray[np.int64]:
        """The length of each key."""
        import numpy as np

        return np.fromiter(map(len, keys), np.int64, len(keys))

    def polynomial(
        self, units: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Codes:
        """Java's 31 h + unit, starting at 0, for each run of units."""
        import numpy as np

        sums = np.zeros(len(units) + 1, np.uint32)
        np.cumsum(units * self._inverse_powers[: len(units)], out=sums[1:], dtype=np.uint32)
        # The exponent of an empty run at the start is -1, but its factor is 0.
        codes: Codes = (sums[ends] - sums[starts]) * self.powers[ends - 1]
        return codes

    def _polynomial_from_one(self, units: Codes, lengths: NDArray[np.int64]) -> Codes:
        """As `_polynomial`, but starting at 1, and for consecutive runs."""
        import numpy as np

        ends = np.cumsum(lengths)
        codes: Codes = self.polynomial(units, ends - lengths, ends) + self.powers[lengths]
        return codes

    def _in_halves(
        self, keys: Sequence[Any], rule: Callable[[Sequence[Any]], Codes], scalar: Hasher
    ) -> Codes:
        """Hashes half of the keys at a time if they have more units than the tables. A very long key is hashed alone."""
        import numpy as np

        if len(keys) == 1:
            return self._one_by_one(keys, scalar)
        middle = len(keys) // 2
        return np.concatenate((rule(keys[:middle]), rule(keys[middle:])))
