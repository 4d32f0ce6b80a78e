"""LIKE of CREATE TABLE: which parts a table takes from another one. Flink: MergeTableLikeUtil."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

INCLUDING, EXCLUDING, OVERWRITING = STRATEGIES = ("INCLUDING", "EXCLUDING", "OVERWRITING")
PARTS = (
    "CONSTRAINTS",
    "DISTRIBUTION",
    "GENERATED",
    "METADATA",
    "OPTIONS",
    "PARTITIONS",
    "WATERMARKS",
)
_OVERWRITABLE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


@dataclass(frozen=True)
class Like:
    """The table after LIKE, and the strategy for each part: by default, all are included and options overwritten."""

    path: str
    strategies: Mapping[str, str] = field(default_factory=dict)

    def strategy(self, part: str) -> str:
        """INCLUDING, EXCLUDING or OVERWRITING."""
        if part in self.strategies:
            return self.strategies[part]
        return self.strategies.get("ALL", OVERWRITING if part == "OPTIONS" else INCLUDING)


def checked_strategy(path: str, strategy: str, part: str) -> None:
    """Checks an option of LIKE, such as EXCLUDING OPTIONS.

    Raises:
        GraphError: The part cannot be overwritten.
    """
    if strategy == OVERWRITING and part not in _OVERWRITABLE:
        raise GraphError(
            f"table '{path}': LIKE cannot overwrite {part}, only {', '.join(_OVERWRITABLE)}"
        )


def described_like(
    path: str, own: TableDescriptor, like: Like, other: TableDescriptor
) -> TableDescriptor:
    """The descriptor of a table with the parts of another one.

    Raises:
        GraphError: Both tables have a part, and LIKE does not say which one counts.
    """
    theirs, ours = other.schema or Schema(()), own.schema or Schema(())
    columns = _joined(path, like, "COLUMNS", dict(theirs.columns), dict(ours.columns))
    computed = _joined(path, like, "GENERATED", dict(theirs.computed), dict(ours.computed))
    metadata = _joined(path, like, "METADATA", _by_name(theirs), _by_name(ours))
    names = [*columns, *computed, *metadata]
    order = dict.fromkeys((*_names(theirs), *_names(ours)))
    twice = next((name for name in order if names.count(name) > 1), None)
    if twice is not None:
        raise GraphError(
            f"table '{path}': column '{twice}' is also in '{like.path}', as another kind of column"
        )
    schema = replace(
        ours,
        columns=tuple(columns.items()),
        computed=tuple(computed.items()),
        metadata=tuple(metadata.values()),
        order=tuple(name for name in order if name in names) if computed or metadata else (),
        time=_one(path, like, "WATERMARKS", theirs.time, ours.time),
        keys=_one(path, like, "CONSTRAINTS", theirs.keys, ours.keys),
    )
    given = {"connector": own.connector} if own.connector else {}
    options = _joined(path, like, "OPTIONS", other.get_options(), {**given, **own.options})
    connector = options.pop("connector", "")
    keys = _one(path, like, "PARTITIONS", other.partition_keys, own.partition_keys)
    return TableDescriptor(connector, schema, options, own.comment or other.comment, keys)


def _names(schema: Schema) -> tuple[str, ...]:
    return schema.order or tuple(name for name, _ in schema.columns)


def _by_name(schema: Schema) -> dict[str, Any]:
    return {each.name: each for each in schema.metadata}


def _joined(
    path: str, like: Like, part: str, theirs: dict[str, Any], ours: dict[str, Any]
) -> dict[str, Any]:
    strategy = like.strategy(part)
    if strategy == EXCLUDING and part in PARTS:
        return ours
    both = theirs.keys() & ours.keys()
    if both and strategy != OVERWRITING:
        raise _conflict(path, like, part, f"'{min(both)}'")
    return {**theirs, **ours}


def _one(path: str, like: Like, part: str, theirs: Any, ours: Any) -> Any:
    strategy = like.strategy(part)
    if theirs and ours and strategy == INCLUDING:
        raise _conflict(path, like, part, _CALLED[part])
    return ours if ours or strategy == EXCLUDING else theirs


_CALLED = {
    "CONSTRAINTS": "a primary key",
    "PARTITIONS": "PARTITIONED BY",
    "WATERMARKS": "a watermark",
}


def _conflict(path: str, like: Like, part: str, what: str) -> GraphError:
    remedy = "rename or remove the column"
    if part in PARTS:
        remedy = f"add (EXCLUDING {part})"
        if part in _OVERWRITABLE:
            remedy += f" or (OVERWRITING {part})"
        remedy += " after LIKE"
    return GraphError(f"table '{path}' has {what}, and '{like.path}' has it, too; {remedy}")
