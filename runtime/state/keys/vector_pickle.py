"""The hash codes of the pickles of many keys, with numpy and mostly without pickling them.

The pickle of an int, a short text or None is an opcode, sometimes a length, and the bytes of the value. The pickle of a
tuple has the pickles of its items between opcodes. So the polynomial of a pickle's bytes is computed from those of its
parts. The numbers equal those of pyflink_keys.py.
"""

# ruff: noqa: PLC0415  (numpy is optional: importing this module must not need it)

from __future__ import annotations

import pickle
from functools import partial
from itertools import combinations
from operator import eq, itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from opchain.runtime.state.keys.java_hash import MASK, hash_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Sized

    import numpy as np
    from numpy.typing import NDArray

    from opchain.runtime.state.keys.vector_hash import Codes, Rule, VectorHash

    Part: TypeAlias = tuple[Codes, NDArray[np.int64]]
    """The same part of many pickles: Java's 31 h + byte over its bytes, starting at 0, and their number."""

_PROTOCOL = 5
_SHORT_TEXT = 255
_LONGEST = 1024
"""The most bytes after the header of a pickle. Keys with longer pickles are pickled."""

_INTS = (
    (-1 << 63, b"\x8a\x08", 8),
    (-1 << 55, b"\x8a\x07", 7),
    (-1 << 47, b"\x8a\x06", 6),
    (-1 << 39, b"\x8a\x05", 5),
    (-1 << 31, b"J", 4),
    (0, b"K", 1),
    (1 << 8, b"M", 2),
    (1 << 16, b"J", 4),
    (1 << 31, b"\x8a\x05", 5),
    (1 << 39, b"\x8a\x06", 6),
    (1 << 47, b"\x8a\x07", 7),
    (1 << 55, b"\x8a\x08", 8),
)
"""The first int of a range, and what precedes the bytes of its ints, and their number. LONG1 (8a) also has the number."""

_SMALLEST_FRAME = 4
_MOST_WITHOUT_MARK = 3
_AT_ONCE = 8_192
"""The keys that are hashed together. With more, their texts may be longer than the table of powers."""

_TEXTS = frozenset({str, bytes})
_OFTEN_SHARED = 1
"""Python stores texts of so many characters only once. So a pickle refers back to the first of two equal ones."""


def _polynomial(content: bytes) -> int:
    """Java's 31 h + byte, starting at 0."""
    code: int = hash_bytes(content) - 31 ** len(content)
    return code & MASK


class VectorPickle:
    """Hashes the pickles of keys that are all of one class.

    Attributes:
        rules: The function for a class of keys. It returns None for a batch that contains a key which it cannot hash.
    """

    def __init__(self, vector: VectorHash) -> None:
        import numpy as np

        self._vector = vector
        sizes = np.arange(_LONGEST + 1)
        headers = np.full(len(sizes), hash_bytes(b"\x80\x05\x95") & MASK, np.uint32)
        for shift in range(0, 64, 8):
            headers = headers * np.uint32(31) + (sizes >> shift).astype(np.int8).astype(np.uint32)
        headers[:_SMALLEST_FRAME] = hash_bytes(b"\x80\x05") & MASK
        self._headers = headers
        # For each range of ints: the next range, the polynomial of the opcode, the weights of the bytes, the size.
        starts, opcodes, widths = zip(*_INTS, strict=True)
        self._int_borders = np.array(starts[1:])
        self._int_opcodes = np.array(
            [_polynomial(code + bytes(width)) for _, code, width in _INTS], np.uint32
        )
        self._int_weights = np.zeros((len(_INTS), 8), np.uint32)
        for weights, width in zip(self._int_weights, widths, strict=True):
            weights[:width] = vector.powers[:width][::-1]
        self._int_sizes = np.array(widths) + list(map(len, opcodes))
        self._parts: Mapping[type, Callable[[Sequence[Any]], Part | None]] = {
            type(None): lambda column: self._constant(len(column), b"N"),
            bool: self._bools,
            int: self._ints,
            str: self._strings,
            bytes: lambda column: self._texts(b"C", column, b"".join(column)),
        }
        self.rules: Mapping[type, Rule] = {
            **{kind: partial(_in_parts, partial(self._scalars, kind)) for kind in self._parts},
            tuple: partial(_in_parts, self._tuples),
        }

    def _scalars(self, kind: type, keys: Sequence[Any]) -> Codes:
        return self._codes(keys, self._parts[kind](keys))

    def _tuples(self, keys: Sequence[tuple[Any, ...]]) -> Codes | None:
        """Tuples of one length with scalars, unless a pickle may refer back to a text."""
        if len(set(map(len, keys))) != 1:
            return None
        columns = [list(map(itemgetter(place), keys)) for place in range(len(keys[0]))]
        kinds = [set(map(type, column)) for column in columns]
        if not all(each <= self._parts.keys() for each in kinds):
            return None
        part = self._tuple(columns, kinds)
        texts = [column for column, each in zip(columns, kinds, strict=True) if each & _TEXTS]
        for pair in combinations(texts, 2):
            if any(map(eq, *pair)) and (part is None or any(map(_is_shared, *pair))):
                return None
        return self._codes(keys, part)

    def _codes(self, keys: Sequence[Any], part: Part | None) -> Codes:
        """The hash codes of pickles with this part between header and STOP; if it is not known, they are pickled."""
        import numpy as np

        if part is None:
            return self._vector.of_bytes([pickle.dumps(key, _PROTOCOL) for key in keys])
        codes, sizes = part[0] * np.uint32(31) + np.uint32(ord(".")), part[1] + 1
        found: Codes = self._headers[sizes] * self._vector.powers[sizes] + codes
        return found

    def _tuple(self, columns: Sequence[Sequence[Any]], kinds: Sequence[set[type]]) -> Part | None:
        if not columns:
            return None
        count = len(columns[0])
        before, after = b"(", b"t"
        if len(columns) <= _MOST_WITHOUT_MARK:
            before, after = b"", bytes([0x84 + len(columns)])
        found = self._constant(count, before)
        for column, classes in zip(columns, kinds, strict=True):
            part = self._part(column, classes)
            if part is None:
                return None
            found = self._joined(found, part)
        found = self._joined(found, self._constant(count, after + b"\x94"))
        return None if found[1].max() >= _LONGEST else found

    def _joined(self, first: Part, second: Part) -> Part:
        codes, sizes = second
        return first[0] * self._vector.powers[sizes] + codes, first[1] + sizes

    def _part(self, column: Sequence[Any], kinds: set[type]) -> Part | None:
        """The pickles of scalars of some classes, without header and STOP; None if one of them is long."""
        import numpy as np

        if len(kinds) == 1:
            return self._parts[next(iter(kinds))](column)
        codes, sizes = np.empty(len(column), np.uint32), np.empty(len(column), np.int64)
        for kind in kinds:
            places = [place for place, each in enumerate(column) if type(each) is kind]
            part = self._parts[kind]([column[place] for place in places])
            if part is None:
                return None
            codes[places], sizes[places] = part
        return codes, sizes

    def _constant(self, count: int, content: bytes) -> Part:
        import numpy as np

        return np.full(count, _polynomial(content), np.uint32), np.full(count, len(content))

    def _bools(self, column: Sequence[bool]) -> Part:
        import numpy as np

        true, false = np.uint32(_polynomial(b"\x88")), np.uint32(_polynomial(b"\x89"))
        return np.where(np.array(column, np.bool_), true, false), np.ones(len(column), np.int64)

    def _ints(self, column: Sequence[int]) -> Part | None:
        import numpy as np

        longs = self._vector.int64s(column)
        if longs is None:
            return None
        ranges = self._int_borders.searchsorted(longs, "right")
        # `take` is twice as fast as an index.
        weights = self._int_weights.take(ranges, 0)
        contents = longs.astype("<i8", copy=False).view(np.int8).reshape(-1, 8).astype(np.uint32)
        codes = self._int_opcodes.take(ranges) + np.einsum("ij,ij->i", contents, weights)
        return codes, self._int_sizes.take(ranges)

    def _strings(self, column: Sequence[str]) -> Part | None:
        text = "".join(column)
        content = text.encode("utf-8", "surrogatepass")
        if len(content) == len(text):
            return self._texts(b"\x8c", column, content)
        return self._texts(
            b"\x8c", [each.encode("utf-8", "surrogatepass") for each in column], content
        )

    def _texts(self, opcode: bytes, column: Sequence[Sized], content: bytes) -> Part | None:
        """An opcode, the length, the bytes, and MEMOIZE. `content` has the bytes of all texts."""
        import numpy as np

        vector = self._vector
        sizes = vector.lengths(column)
        if len(content) >= len(vector.powers) or sizes.max() > _SHORT_TEXT:
            return None
        ends = np.cumsum(sizes)
        units = np.frombuffer(content, np.int8).astype(np.int32).view(np.uint32)
        texts = vector.polynomial(units, ends - sizes, ends) if content else np.uint32(0)
        before = np.uint32(_polynomial(opcode) * 31 & MASK) + sizes.astype(np.int8).astype(
            np.uint32
        )
        codes = before * vector.powers[sizes] + texts
        return codes * np.uint32(31) + np.uint32(_polynomial(b"\x94")), sizes + 3


def _in_parts(rule: Rule, keys: Sequence[Any]) -> Codes | None:
    import numpy as np

    if len(keys) <= _AT_ONCE:
        return rule(keys)
    parts = []
    for first in range(0, len(keys), _AT_ONCE):
        codes = rule(keys[first : first + _AT_ONCE])
        if codes is None:
            return None
        parts.append(codes)
    return np.concatenate(parts)


def _is_shared(one: Any, other: Any) -> bool:
    return one == other and type(one) in _TEXTS and len(one) <= _OFTEN_SHARED
