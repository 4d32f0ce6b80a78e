"""A simulated catalog of Iceberg: pyiceberg's own code on files in memory.

As in Iceberg's REST catalog, a commit is one request. The server checks its requirements against the current metadata, and
refuses it or replaces the metadata. A request that failed otherwise may have reached the server, may reach it later, or
never. Manifests are files beside the data, and readers follow the metadata to them.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyarrow import parquet
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.types import NestedField, StringType
from simulated_outputs import AtOnce, Output
from simulated_storage import OUTPUT

from opchain.runtime.connectors.lakes import IcebergSink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulated_scheduler import Scheduler
    from simulated_storage import SimulatedFiles

_NAME = ("lake", "results")
_SCHEMA = Schema(NestedField(1, "line", StringType(), required=False))


class IcebergTable(Output):
    """The catalog, with one table.

    Attributes:
        metadata: The current metadata of the table.
    """

    takes_rows = True
    failures = (CommitFailedException, CommitStateUnknownException)

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self.metadata = new_table_metadata(
            _SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, f"{OUTPUT}/lake"
        )

    @staticmethod
    def add_to(stream: Any) -> Any:
        return stream.sink_to(IcebergSink(".".join(_NAME)))

    def substitutes(self) -> dict[str, Any]:
        return {
            "pyiceberg.catalog.load_catalog": lambda *_, **__: _Catalog(self),
            "pyiceberg.utils.concurrent.ExecutorFactory.get_or_create": AtOnce,
        }

    def lines(self) -> Iterator[str]:
        snapshot, files = self.metadata.current_snapshot(), _Files(self.files)
        for manifest in () if snapshot is None else snapshot.manifests(files):
            for entry in manifest.fetch_manifest_entry(files):
                data = self.files.files[entry.data_file.file_path]
                yield from parquet.read_table(BytesIO(data))["line"].to_pylist()

    @property
    def stored(self) -> Any:
        """Without manifests and snapshots, which have random ids and the time."""
        data = {path: data for path, data in self.files.files.items() if "/metadata/" not in path}
        return data, sorted(self.lines()), self.metadata.properties


class _Catalog(NoopCatalog):
    """What IcebergSink and pyiceberg's Table need of a catalog."""

    def __init__(self, server: IcebergTable) -> None:
        super().__init__("simulated")
        self._server = server

    def load_table(self, identifier: Any) -> Table:
        metadata = self._server.world.call(
            "load the table", lambda: self._server.metadata, changes=False
        )
        return Table(_NAME, metadata, "", _Files(self._server.files), self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        def commit() -> CommitTableResponse:
            current = self._server.metadata
            for requirement in requirements:
                requirement.validate(current)
            self._server.metadata = update_table_metadata(current, updates)
            return CommitTableResponse(metadata=self._server.metadata, **{"metadata-location": ""})

        try:
            found: CommitTableResponse = self._server.world.call(
                "commit to the table", commit, changes=True
            )
        except OSError as error:
            raise CommitStateUnknownException(str(error)) from error
        return found


class _Files(FileIO):
    """Gives pyiceberg the files in memory."""

    def __init__(self, files: SimulatedFiles) -> None:
        super().__init__()
        self._files = files

    def new_input(self, location: str) -> _File:
        return _File(location, self._files)

    def new_output(self, location: str) -> _File:
        return _File(location, self._files)

    def delete(self, location: Any) -> None:
        self._files.delete(location if isinstance(location, str) else location.location)


class _File(InputFile, OutputFile):
    def __init__(self, location: str, files: SimulatedFiles) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        found = self._files.status(self.location)
        if found is None:
            raise FileNotFoundError(self.location)
        return found.size

    def exists(self) -> bool:
        return self._files.status(self.location) is not None

    def open(self, seekable: bool = True) -> Any:
        return self._files.open_input(self.location)

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> Any:
        return _Written(self._files, self._files.create(self.location))


class _Written:
    """A file that is written until it is closed."""

    def __init__(self, files: SimulatedFiles, stream: BytesIO) -> None:
        self._files, self._stream = files, stream
        self.write, self.tell = stream.write, stream.tell

    def __enter__(self) -> _Written:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self) -> None:
        """It is written when it is closed."""

    def close(self) -> None:
        if not self._stream.closed:
            self._files.complete(self._stream)
