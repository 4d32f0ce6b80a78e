"""Reads the state in checkpoints and savepoints as rows, and writes rows as a savepoint to start a job from.

    import opchain.state
    counts = opchain.state.read("/data/job/chk-12", operator="counts", state="count")
    frame = counts.to_pandas()
    frame.loc[frame["key"] == "x", "value"] = 0
    opchain.state.write("/data/repaired", frame, base="/data/job/chk-12")

A row has these columns: operator (its uid, else its name), operator_id, state, kind, key, window_start, window_end,
value, key_group, subtask, namespace. `StateRow` describes them.

Reading state unpickles it, and unpickling can run any code that the checkpoint's author put there. Only read your own
checkpoints, or pass the key that signed them.

Flink: `SavepointReader` and `SavepointWriter` of the State Processor API. Not in PyFlink.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, read_key
from opchain.runtime.checkpoint.metadata import OperatorMetadata
from opchain.runtime.checkpoint.savepoint import find_checkpoint
from opchain.runtime.checkpoint.state_rows import (
    Chosen,
    StateRow,
    arrow_table,
    as_json,
    chosen_operators,
    read_rows,
    row_type,
    rows_from,
    write_rows,
)
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CheckpointError, imported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.runtime.checkpoint.savepoint import Located
    from opchain.runtime.types.type_information import TypeInformation

__all__ = ["StateRow", "StateRows", "read", "write"]

_LOG = logging.getLogger("opchain.state")


@dataclass(frozen=True)
class StateRows:
    """The rows of a checkpoint. Created by `read`; each method reads the checkpoint again."""

    checkpoint: Located
    chosen: Chosen

    def __iter__(self) -> Iterator[StateRow]:
        return read_rows(self.checkpoint, self.chosen)

    def to_json(self) -> Iterator[str]:
        """Each row as a JSON object. Values that are not JSON become their `repr`."""
        return map(as_json, self)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`. `key` and `value` get the types of their contents, so all rows must have the same types.

        Raises:
            StateError: The rows have several types, or a class without columns.
        """
        return arrow_table(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`. Keys and values are the Python objects that the job's functions used."""
        pandas = imported("pandas", "pandas", "reading state as a DataFrame")
        return pandas.DataFrame([_values(row) for row in self], columns=_names(), dtype=object)

    def to_spark(self, spark: Any) -> Any:
        """A Spark DataFrame, partitioned by key group: each executor reads the key groups of its partitions.

        The first 1,000 rows decide the types of `key` and `value`. State without keys is not included.

        Args:
            spark: The SparkSession.

        Raises:
            StateError: Keys or values have several types, or a class without columns.
        """
        from opchain.runtime.spark.data_source import state_frame  # noqa: PLC0415 - needs Spark

        return state_frame(spark, self.checkpoint, self.chosen, row_type(iter(self)))


def read(
    checkpoint: str | Path,
    operator: str | None = None,
    state: str | None = None,
    *,
    key: Any = ...,
    key_file: str | Path | None = None,
) -> StateRows:
    """The keyed state, timers, window contents and operator state of a checkpoint.

    Args:
        checkpoint: A checkpoint, a savepoint, or the checkpoint directory of a run, which means its last checkpoint.
        operator: A uid, name or id. Default: all operators.
        state: The name of a state or timer service. Default: all of them.
        key: Returns only the rows of this key.
        key_file: The key that signed the checkpoint (`execution.checkpointing.key-file`).

    Raises:
        CheckpointError: The checkpoint, operator or state does not exist.
        CheckpointKeyError: The checkpoint is not signed by that key.
    """
    signed_by = None if key_file is None else read_key(str(key_file))
    found = find_checkpoint(str(checkpoint), signed_by)
    if signed_by is None:
        _LOG.warning("%s", RUNS_PICKLES.format(found.storage.url))
    chosen_operators(found.metadata, operator, state)
    return StateRows(found, Chosen(operator, state, None if key is ... else (key,)))


def write(
    target: str | Path,
    rows: Any,
    *,
    base: str | Path | None = None,
    operator: str | None = None,
    state: str | None = None,
    kind: str = "value",
    key_type: TypeInformation[Any] | None = None,
    max_parallelism: int = 128,
    key_file: str | Path | None = None,
) -> None:
    """Writes a savepoint from rows, to start a job with new state, or with changed state of a checkpoint.

    For each combination of operator, state and kind in the rows, the rows replace all state of the base. All other
    state is copied, including the positions of sources. Without a base, sources start from their beginning.

    Args:
        target: An empty folder: a path or URL.
        rows: A pandas or Spark DataFrame, an Arrow table, or an iterable of `StateRow` or mappings. The columns are
            those of `read`. `operator`, `state` and `value` are required, as columns or as arguments.
        base: The checkpoint to change. None: the savepoint has only these rows.
        operator: The uid of the operator, if there is no such column. An operator of the base can also be given by its
            name or id.
        state: The name of the state, if there is no such column.
        kind: The kind of state (see `StateRow`), if there is no such column.
        key_type: The type that the program passes to `key_by`. Default: derived from the keys of the base; without a
            base, the type of a `key_by` without a declared type.
        max_parallelism: The number of key groups of the job, for an operator that is not in the base.
        key_file: The key that signed the base, and signs the savepoint.

    Raises:
        CheckpointError: The target is not empty, or the base does not exist.
        StateError: A column, key or value is invalid.
    """
    signed_by = None if key_file is None else read_key(str(key_file))
    located = None if base is None else find_checkpoint(str(base), signed_by)
    if located is not None and signed_by is None:
        _LOG.warning("%s", RUNS_PICKLES.format(located.storage.url))
    given = {"operator": operator, "state": state, "kind": kind}
    found = rows_from(rows, {name: value for name, value in given.items() if value is not None})
    by_operator: dict[str, dict[tuple[str, str], list[StateRow]]] = {}
    if (
        operator is not None and state is not None
    ):  # also if there are no rows: the state is emptied
        by_operator[operator] = {(state, kind): []}
    for row in found:
        of_operator = by_operator.setdefault(row.operator, {})
        of_operator.setdefault((row.state, row.kind), []).append(row)
    new: dict[str, OperatorMetadata] = {}
    ids = {name: _operator_id(name, located, max_parallelism, new) for name in by_operator}
    write_rows(
        checkpoint_storage(str(target), signed_by),
        {ids[name]: of_states for name, of_states in by_operator.items()},
        base=located,
        new_operators=new,
        key_type=key_type,
    )


def _operator_id(
    name: str, base: Located | None, max_parallelism: int, new: dict[str, OperatorMetadata]
) -> str:
    if base is not None:
        known = [
            each.operator_id
            for each in base.metadata.operators
            if name in (each.uid, each.name, each.operator_id)
        ]
        if len(known) > 1:
            raise CheckpointError(
                f"{len(known)} operators of the checkpoint are named '{name}': give the id of one, {known}"
            )
        if known:
            return known[0]
    from opchain.compiler.passes.assign_operator_ids import hash_of_uid  # noqa: PLC0415 - the driver has it

    operator_id = hash_of_uid(name).hex()
    new[operator_id] = OperatorMetadata(
        operator_id, name, "opchain.state.write", 0, 1, max_parallelism, uid=name, is_keyed=True
    )
    return operator_id


def _names() -> list[str]:
    return list(StateRow.__dataclass_fields__)


def _values(row: StateRow) -> list[Any]:
    return [getattr(row, name) for name in _names()]
