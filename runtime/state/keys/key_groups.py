"""Key groups: the unit in which keyed state is assigned to subtasks, moved and restored.

A key always belongs to the same one of `max_parallelism` key groups. Each subtask of an operator has a range of key
groups. So a job can restart with another parallelism, and no key changes its key group. The formulas are those of
Flink's `KeyGroupRangeAssignment` and `MathUtils.murmurHash`, so each key is in the same key group as in Flink.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from opchain.runtime.state.keys.java_hash import MASK, Hasher, java_hash_code

MAX_PARALLELISM_LIMIT = 1 << 15
"""The largest parallelism, and the largest number of key groups."""

DEFAULT_MAX_PARALLELISM_FLOOR = 128

_SIGN = 0x80000000


def murmur_hash(code: int) -> int:
    """Mixes a 32-bit hash code to a non-negative one: MurmurHash3 x86 32 of one block, with seed 0."""
    code = (code * 0xCC9E2D51) & MASK
    code = ((code << 15) | (code >> 17)) & MASK
    code = (code * 0x1B873593) & MASK
    code = ((code << 13) | (code >> 19)) & MASK
    code = (code * 5 + 0xE6546B64) & MASK
    code ^= 4
    code ^= code >> 16
    code = (code * 0x85EBCA6B) & MASK
    code ^= code >> 13
    code = (code * 0xC2B2AE35) & MASK
    code ^= code >> 16
    # Flink negates a negative int, and returns 0 for the smallest int, whose negation is itself.
    return code if code < _SIGN else (-code & MASK) % _SIGN


def key_group(key: object, max_parallelism: int, hasher: Hasher = java_hash_code) -> int:
    """The key group of a key, from 0 to `max_parallelism` - 1.

    >>> [key_group(key, 128) for key in ("hello", 42)]
    [35, 29]

    Args:
        key: What `key_by` returned.
        max_parallelism: Number of key groups.
        hasher: The hash function of the declared key type, if there is one.

    Raises:
        KeyTypeError: If the key has no stable hash, or is not of the type that the hasher expects.
        ValueError: If `max_parallelism` is not from 1 to 32768.
    """
    check_bounds("max parallelism", max_parallelism)
    return murmur_hash(hasher(key)) % max_parallelism


def operator_index(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """The parallel instance that owns a key group, from 0 to `parallelism` - 1.

    Raises:
        ValueError: If an argument is out of bounds; Flink checks none of them here.
    """
    check_parallelism(parallelism, max_parallelism)
    if not 0 <= key_group < max_parallelism:
        raise ValueError(
            f"key group must be from 0 to {max_parallelism - 1}, one below the max parallelism, "
            f"but is {key_group}"
        )
    return key_group * parallelism // max_parallelism


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """Consecutive key groups, both ends included.

    >>> list(KeyGroupRange(3, 5)), 5 in KeyGroupRange(3, 5)
    ([3, 4, 5], True)
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise ValueError(
                f"a key group range must start at 0 or above and not end before its start, "
                f"but is {self.first} to {self.last}"
            )

    def __contains__(self, key_group: object) -> bool:
        return isinstance(key_group, int) and self.first <= key_group <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __len__(self) -> int:
        return self.last - self.first + 1


def key_group_range(max_parallelism: int, parallelism: int, index: int) -> KeyGroupRange:
    """The key groups that one parallel instance owns.

    Raises:
        ValueError: If an argument is out of bounds, or there are more instances than key groups.
    """
    check_parallelism(parallelism, max_parallelism)
    if not 0 <= index < parallelism:
        raise ValueError(
            f"operator index must be from 0 to {parallelism - 1}, one below the parallelism, "
            f"but is {index}"
        )
    first = -(-index * max_parallelism // parallelism)
    last = ((index + 1) * max_parallelism - 1) // parallelism
    return KeyGroupRange(first, last)


def default_max_parallelism(parallelism: int) -> int:
    """The number of key groups of an operator that sets none: room to grow by half, at least 128.

    >>> [default_max_parallelism(parallelism) for parallelism in (1, 100, 32768)]
    [128, 256, 32768]

    Raises:
        ValueError: If `parallelism` is not from 1 to 32768.
    """
    check_bounds("parallelism", parallelism)
    room_to_grow = parallelism + parallelism // 2
    power_of_two = 1 << (room_to_grow - 1).bit_length()
    return min(max(power_of_two, DEFAULT_MAX_PARALLELISM_FLOOR), MAX_PARALLELISM_LIMIT)


def check_bounds(name: str, value: int) -> None:
    """Checks a parallelism or max parallelism.

    Raises:
        ValueError: It is not from 1 to 32768. The message contains `name`.
    """
    if not 0 < value <= MAX_PARALLELISM_LIMIT:
        raise ValueError(f"{name} must be from 1 to {MAX_PARALLELISM_LIMIT}, but is {value}")


def check_parallelism(parallelism: int, max_parallelism: int) -> None:
    """Checks that each instance has a key group.

    Raises:
        ValueError: One of the two is not from 1 to 32768, or the max parallelism is smaller than the parallelism.
    """
    check_bounds("parallelism", parallelism)
    check_bounds("max parallelism", max_parallelism)
    if max_parallelism < parallelism:
        raise ValueError(
            f"max parallelism must not be smaller than parallelism, but {max_parallelism} key "
            f"groups would be shared by {parallelism} subtasks"
        )
