"""Compares key groups with what Flink 2.3 computed, table by table."""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_groups import (
    default_max_parallelism,
    key_group,
    key_group_range,
    murmur_hash,
    operator_index,
)
from opchain.runtime.state.keys.key_hashers import hasher_named, list_of, tuple_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.state.keys.java_hash import Hasher

Comparison = tuple[str, Any, Any]
"""Which value, what was found, what Flink says."""

_FIRST = 20
_HASHED_BY_PYTHON_TYPE = {"Long", "String", "Boolean", "Double", "null"}
_REFUSED: dict[str, Callable[[], object]] = {
    "range: parallelism above max parallelism": lambda: key_group_range(4, 5, 0),
    "range: parallelism 0": lambda: key_group_range(128, 0, 0),
    "range: max parallelism 32769": lambda: key_group_range(32769, 1, 0),
    "assign: null key": lambda: key_group(None, 128),
    "default max parallelism of 32769": lambda: default_max_parallelism(32769),
}


def check(document: dict[str, Any]) -> tuple[int, int, list[str]]:
    """How many values are equal, how many there are, and the first differences as text."""
    equal, total = 0, 0
    differences: list[str] = []
    for name, found, expected in _comparisons(document):
        total += 1
        # Java's values have types: 1 and True are not match.
        if found == expected and type(found) is type(expected):
            equal += 1
        elif len(differences) < _FIRST:
            differences.append(f"{name}: {found!r}, Flink has {expected!r}")
    return equal, total, differences


def hasher_of(type_name: str) -> Hasher:
    """The hasher for a type as the document writes it, such as `Tuple2<String,Long>`."""
    name, arguments = _parsed(type_name)
    if name.startswith("Tuple"):
        return tuple_of(*map(hasher_of, arguments))
    if name == "List":
        return list_of(hasher_of(arguments[0]))
    return java_hash_code if name == "null" else hasher_named(name)


def python_value(type_name: str, entry: dict[str, Any]) -> Any:
    """The Python key that an entry of the table `keys` describes."""
    if type_name == "Float":
        return struct.unpack(">f", bytes.fromhex(entry["bits"]))[0]
    if type_name == "Double":
        return struct.unpack(">d", bytes.fromhex(entry["bits"]))[0]
    return _converted(type_name, entry["value"])


def is_hashed_by_python_type(type_name: str) -> bool:
    """Whether a key of this Java type is hashed the same without a declared type."""
    return all(
        name in _HASHED_BY_PYTHON_TYPE or re.fullmatch(r"List|Tuple\d+", name)
        for name in re.findall(r"\w+", type_name)
    )


def _converted(type_name: str, value: Any) -> Any:
    name, arguments = _parsed(type_name)
    if value is None:
        return None
    if name.startswith("Tuple"):
        return tuple(map(_converted, arguments, value))
    if name == "List":
        return [_converted(arguments[0], element) for element in value]
    return float(value) if name == "Double" else value


def _parsed(type_name: str) -> tuple[str, list[str]]:
    """A type's name and its arguments: `A<B<C>,D>` is A with `B<C>` and `D`."""
    name, _, rest = type_name.partition("<")
    arguments, depth = [""], 0
    for char in rest.removesuffix(">"):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += char
    return name, arguments


def _comparisons(document: dict[str, Any]) -> Iterator[Comparison]:
    yield from _keys(document)
    for code, expected in document["murmur_hash"]:
        yield f"murmur_hash({code})", murmur_hash(code), expected
    code = document["murmur_code_whose_mix_is_min_value"]
    yield f"murmur_hash({code})", murmur_hash(code), 0
    for table in document["key_group_ranges"]:
        groups, parallelism = table["max_parallelism"], table["parallelism"]
        for index, first, last in table["ranges"]:
            found = key_group_range(groups, parallelism, index)
            name = f"key_group_range({groups}, {parallelism}, {index})"
            yield f"{name}.first", found.first, first
            yield f"{name}.last", found.last, last
    for entry in document["default_max_parallelism"]:
        parallelism = entry["parallelism"]
        name = f"default_max_parallelism({parallelism})"
        if "error_class" in entry:
            yield name, _is_refused(partial(default_max_parallelism, parallelism)), True
        else:
            yield name, default_max_parallelism(parallelism), entry["max_parallelism"]
    for entry in document["errors"]:
        yield entry["case"], _is_refused(_REFUSED[entry["case"]]), True


def _keys(document: dict[str, Any]) -> Iterator[Comparison]:
    for entry in document["keys"]:
        type_name = entry["type"]
        key, hasher = python_value(type_name, entry), hasher_of(type_name)
        name = f"{type_name} {entry['value']!r}"
        yield f"hash code of {name}", hasher(key), entry["hash_code"]
        if is_hashed_by_python_type(type_name):
            yield f"hash code of undeclared {name}", java_hash_code(key), entry["hash_code"]
        yield f"murmur hash of {name}", murmur_hash(hasher(key)), entry["murmur"]
        for groups, group, operators in zip(
            document["max_parallelisms"], entry["key_groups"], entry["operators"], strict=True
        ):
            yield f"key group of {groups} of {name}", key_group(key, groups, hasher), group
            parallelisms = [p for p in document["parallelisms"] if p <= groups]
            for parallelism, operator in zip(parallelisms, operators, strict=True):
                found = operator_index(group, groups, parallelism)
                yield f"operator of {parallelism} of {groups} of {name}", found, operator


def _is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except (ValueError, TypeError):
        return True
    return False
