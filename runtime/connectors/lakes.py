"""IcebergSink and DeltaSink: write rows to tables of data lakes, exactly once. Flink has both connectors in Java only.

Tasks write Parquet files below the table. No reader sees them yet, because readers follow the table's metadata. The
driver adds the files of an epoch in one commit of the table. The same commit notes the epoch and its owner: in a table
property (Iceberg), or as the version of an application (Delta). So a repeated commit is recognized. The owner contains
the lineage of the job's checkpoints, so two jobs with the same epoch numbers are not confused.

Before a task writes a file, it writes an empty *marker* to `.opchain/<owner>`, and the commit deletes the marker. A file
that has a marker and is not part of the table was never committed.
"""

from __future__ import annotations

import json
import operator
import time
import uuid
from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.commit_sink import CommitSink, SinkEpoch
from opchain.runtime.connectors.outbox import delete_file
from opchain.runtime.errors import COMMIT_FIRST, SinkError, imported, short_repr
from opchain.runtime.files.file_systems import (
    dataset_of,
    file_system_of,
    joined,
    name_of,
    qualified_path,
)
from opchain.runtime.formats.row_values import moment_of
from opchain.runtime.time import Instant
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_ATTEMPTS = 5
_MARKERS = ".opchain"


class DataFile(NamedTuple):
    """A staged Parquet file; `path` is relative to the table."""

    path: str
    size: int
    rows: int


class _LakeSink(CommitSink[Any]):
    """A sink that stages Parquet files with markers."""

    batch_size = 100_000

    @abstractmethod
    def location(self) -> str:
        """The path or URL of the table."""

    @abstractmethod
    def arrow_schema(self) -> Any:
        """The table's schema."""

    @abstractmethod
    def add(self, owner: str, number: int, files: Sequence[DataFile]) -> None:
        """Adds files to the table and notes the epoch, in one commit; nothing if the epoch is noted.

        Raises:
            Exception: An error of `conflict`: the table has changed since the note was read, so nothing was added.
        """

    @abstractmethod
    def conflict(self) -> type[Exception]:
        """The library's error for a commit that another one has preceded."""

    @abstractmethod
    def committed_files(self) -> set[str]:
        """The names of the table's files."""

    def stage(self, owner: str, records: Sequence[Any]) -> DataFile:
        """Writes a Parquet file below the table.

        Raises:
            SinkError: A record does not fit the table.
        """
        parquet = imported("pyarrow.parquet", "files", type(self).__name__)
        rows = self._table_of(records)
        name = f"{uuid.uuid4().hex}.parquet"
        location = qualified_path(self.location())
        files = file_system_of(location)
        marker = joined(location, _MARKERS, owner, name)
        files.make_folder(marker.rpartition("/")[0])
        files.touch(marker)
        path = joined("data", name)
        files.make_folder(joined(location, "data"))
        stream = files.create(joined(location, path))
        parquet.write_table(rows, stream)
        size = stream.tell()
        files.complete(stream)
        return DataFile(path, size, len(records))

    def commit(self, epoch: SinkEpoch, staged: Sequence[DataFile]) -> None:
        """Adds the files to the table, unless the epoch is already noted."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.add(epoch.owner, epoch.number, staged)
                break
            except self.conflict():
                if attempt == _ATTEMPTS:
                    raise
        folder = self._markers(epoch.owner)
        for file in staged:
            delete_file(joined(folder, name_of(file.path)))

    def abort(self, owner: str) -> None:
        """Deletes files that have a marker and are not part of the table."""
        folder = self._markers(owner)
        content = file_system_of(folder).content(folder)
        if content is None or not content.files:
            return
        committed = self.committed_files()
        self.confirm()
        for marker in content.files:
            name = name_of(marker.path)
            if name not in committed:
                delete_file(joined(qualified_path(self.location()), "data", name))
            delete_file(marker.path)

    def _require(self, number: int, files: Sequence[DataFile]) -> None:
        """Checks that the files exist. A table with a missing file could not be read.

        Raises:
            SinkError: A file is missing.
        """
        location = qualified_path(self.location())
        for file in files:
            path = joined(location, file.path)
            if file_system_of(path).status(path) is None:
                raise SinkError(
                    f"{self!r}: {path} is missing, with records of checkpoint {number} that wait for their commit: "
                    f"restore the file, or start the job from an earlier checkpoint. If the sink "
                    f"wrote to another table, {COMMIT_FIRST}"
                )

    def _markers(self, owner: str) -> str:
        return joined(qualified_path(self.location()), _MARKERS, owner)

    def _table_of(self, records: Sequence[Any]) -> Any:
        pa = imported("pyarrow", "files", type(self).__name__)
        schema = self.arrow_schema()
        as_dict = _to_dict(schema, pa.types)
        refusals = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError)
        try:
            return pa.Table.from_pylist(list(map(as_dict, records)), schema)
        except refusals as error:
            for record in records:
                try:
                    pa.Table.from_pylist([as_dict(record)], schema)
                except refusals as first:  # noqa: PERF203 - rare
                    raise SinkError(
                        f"{self!r} can't write the record {short_repr(record)}: {first}; the columns are {schema.names}"
                    ) from error
            raise


class IcebergSink(_LakeSink):
    """Appends rows to an Iceberg table that exists and is not partitioned. Not in Flink.

    Needs pyiceberg: `pip install 'opchain[iceberg]'`. Records are Rows, dicts or tuples of the table's columns.

    Args:
        table: The identifier: `namespace.table`.
        catalog: The catalog's name.
        properties: The catalog's properties, such as `type` and `uri`; by default pyiceberg's own configuration.
            The driver and all executors must reach the catalog.
    """

    def __init__(
        self, table: str, catalog: str = "default", properties: Mapping[str, str] | None = None
    ) -> None:
        self.table = table
        self.catalog = catalog
        self.properties = dict(properties or {})
        self._loaded: Any = None

    def __repr__(self) -> str:
        return f"IcebergSink({self.table!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": None}

    def open(self) -> None:
        """Loads the table.

        Raises:
            SinkError: The table does not exist, or is partitioned.
        """
        catalogs = imported("pyiceberg.catalog", "iceberg", "IcebergSink")
        errors = imported("pyiceberg.exceptions", "iceberg", "IcebergSink")
        try:
            self._loaded = catalogs.load_catalog(self.catalog, **self.properties).load_table(
                self.table
            )
        except errors.NoSuchTableError as error:
            raise SinkError(
                f"{self!r}: the catalog '{self.catalog}' has no table '{self.table}'; create it before the job"
            ) from error
        if not self._loaded.spec().is_unpartitioned():
            raise SinkError(
                f"{self!r}: the table is partitioned, which is not supported; write to an unpartitioned table"
            )

    def location(self) -> str:
        """The path or URL of the table."""
        return str(self._loaded.location())

    def arrow_schema(self) -> Any:
        """The table's schema."""
        return self._loaded.schema().as_arrow()

    def add(self, owner: str, number: int, files: Sequence[DataFile]) -> None:
        """Adds files, and sets the table's property."""
        if (self.last_commit(owner) or 0) >= number:
            return
        self._require(number, files)
        note = {"opchain.owner": owner, "opchain.epoch": str(number)}
        paths = [f"{self.location().rstrip('/')}/{file.path}" for file in files]
        with self._transaction() as transaction:
            transaction.add_files(paths, snapshot_properties=note, check_duplicate_files=False)
            transaction.set_properties({_property(owner): str(number)})

    def conflict(self) -> type[Exception]:
        """The error of pyiceberg."""
        error: type[Exception] = imported(
            "pyiceberg.exceptions", "iceberg", "IcebergSink"
        ).CommitFailedException
        return error

    def _transaction(self) -> Any:
        """A transaction without pyiceberg's own retries, which would not read the note again."""
        metadata = self._loaded.metadata
        once = metadata.properties | {"commit.retry.num-retries": "0"}
        self._loaded.metadata = metadata.model_copy(update={"properties": once})
        return self._loaded.transaction()

    def last_commit(self, owner: str) -> int | None:
        """The epoch in the table's property."""
        self._loaded.refresh()
        found = self._loaded.properties.get(_property(owner))
        return None if found is None else int(found)

    def reset_commits(self, owner: str, number: int) -> None:
        """Lowers the epoch in the property."""
        if (self.last_commit(owner) or 0) > number:
            with self._loaded.transaction() as transaction:
                transaction.set_properties({_property(owner): str(number)})

    def committed_files(self) -> set[str]:
        """The names of the files of all snapshots that the table still has."""
        self._loaded.refresh()
        return {name_of(path) for path in self._loaded.inspect.all_files()["file_path"].to_pylist()}


class DeltaSink(_LakeSink):
    """Appends rows to a Delta table that exists and is not partitioned. Not in Flink.

    Needs deltalake: `pip install 'opchain[delta]'`. Records are Rows, dicts or tuples of the table's columns.

    Args:
        path: The path or URL of the table.
        storage_options: Options of deltalake, such as credentials. Data files are written through fsspec, which has its
            own configuration.
    """

    def __init__(self, path: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.path = str(path)
        self.storage_options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"DeltaSink({self.path!r})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The folder, for lineage."""
        return (dataset_of(self.path),)

    def open(self) -> None:
        """Loads the table.

        Raises:
            SinkError: The table does not exist, or is partitioned.
        """
        table = self._loaded()
        if table.metadata().partition_columns:
            raise SinkError(
                f"{self!r}: the table is partitioned, which is not supported; write to an unpartitioned table"
            )

    def location(self) -> str:
        """The path or URL of the table."""
        return self.path

    def arrow_schema(self) -> Any:
        """The table's schema."""
        pa = imported("pyarrow", "files", "DeltaSink")
        return pa.schema(self._loaded().schema().to_arrow())

    def add(self, owner: str, number: int, files: Sequence[DataFile]) -> None:
        """Adds files, with the version of the application `owner`."""
        table = self._loaded()
        if (table.transaction_version(owner) or 0) < number:
            self._require(number, files)
            _append(table, owner, number, files)

    def conflict(self) -> type[Exception]:
        """The error of deltalake."""
        error: type[Exception] = imported(
            "deltalake.exceptions", "delta", "DeltaSink"
        ).CommitFailedError
        return error

    def last_commit(self, owner: str) -> int | None:
        """The version of the application."""
        found = self._loaded().transaction_version(owner)
        return None if found is None else int(found)

    def reset_commits(self, owner: str, number: int) -> None:
        """Lowers the version of the application."""
        table = self._loaded()
        if (table.transaction_version(owner) or 0) > number:
            _append(table, owner, number, ())

    def committed_files(self) -> set[str]:
        """The names of the table's files."""
        return {name_of(path) for path in self._loaded().file_uris()}

    def _loaded(self) -> Any:
        library = imported("deltalake", "delta", "DeltaSink")
        errors = imported("deltalake.exceptions", "delta", "DeltaSink")
        try:
            return library.DeltaTable(self.path, storage_options=self.storage_options or None)
        except errors.TableNotFoundError as error:
            raise SinkError(
                f"{self!r}: there is no Delta table; create it before the job"
            ) from error


def _append(table: Any, owner: str, number: int, files: Sequence[DataFile]) -> None:
    """One commit of a Delta table, which fails if `owner` has committed since the table was loaded."""
    library = imported("deltalake", "delta", "DeltaSink")
    actions = imported("deltalake.transaction", "delta", "DeltaSink")
    now_ms = time.time_ns() // 1_000_000
    added = [
        actions.AddAction(
            file.path, file.size, {}, now_ms, True, json.dumps({"numRecords": file.rows})
        )
        for file in files
    ]
    notes = library.CommitProperties(
        app_transactions=[library.Transaction(owner, number)], max_commit_retries=_ATTEMPTS
    )
    table.create_write_transaction(added, "append", table.schema(), [], commit_properties=notes)


def _property(owner: str) -> str:
    return f"opchain.committed.{owner}"


def _to_dict(schema: Any, types: Any) -> Callable[[Any], dict[str, Any]]:
    """Converts records to dictionaries by the names of the fields of an Arrow schema or struct."""
    converters = {field.name: _converter(field.type, types) for field in schema}

    def converted(record: Any) -> dict[str, Any]:
        if isinstance(record, Row) and record._fields:
            record = record.as_dict()
        if isinstance(record, dict):
            unknown = [name for name in record if name not in converters]
            if unknown:
                raise ValueError(f"the table has no column '{unknown[0]}'")
            return {name: converters[name](value) for name, value in record.items()}
        values = list(record)
        if len(values) != len(converters):
            raise ValueError(
                f"it has {len(values)} values, and the table has {len(converters)} columns"
            )
        return {
            name: convert(value)
            for value, (name, convert) in zip(values, converters.items(), strict=True)
        }

    return converted


def _converter(of: Any, types: Any) -> Callable[[Any], Any]:
    """Converts values for an Arrow type. A TypeError if Arrow would drop the fraction of a number, or the time of a date."""
    convert: Callable[[Any], Any]
    if types.is_integer(of):
        convert = operator.index
    elif types.is_date(of):
        convert = _without_time
    elif types.is_timestamp(of):
        convert = _moment
    elif types.is_struct(of):
        convert = _to_dict(of, types)
    elif types.is_list(of) or types.is_large_list(of):
        convert = _list_converter(_converter(of.value_type, types))
    elif types.is_map(of):
        convert = _map_converter(_converter(of.key_type, types), _converter(of.item_type, types))
    else:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _without_time(value: Any) -> Any:
    if isinstance(value, datetime):
        raise TypeError(f"{value!r} has a time of day")
    return value


def _moment(value: Any) -> Any:
    return moment_of(value) if isinstance(value, Instant) else value


def _list_converter(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: list(map(item, values))


def _map_converter(key: Callable[[Any], Any], item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda entries: (
        [(key(each), item(value)) for each, value in entries.items()]
        if isinstance(entries, dict)
        else entries
    )
