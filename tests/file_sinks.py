"""Writes and commits file sinks without a job, and shows their files."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from opchain.common import Encoder
from opchain.runtime.connectors.file_buckets import BucketAssigner
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.connectors.staged_files import STAGING
from opchain.runtime.functions.sink import SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opchain.runtime.functions.sink import SinkWriter


class Subtask:
    def __init__(self, index: int) -> None:
        self.index = index

    def get_index_of_this_subtask(self) -> int:
        return self.index


def sink_to(path: Path, **changes: Any) -> FileSink[str]:
    builder = FileSink.for_row_format(str(path), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    if "compact" in changes:
        builder.enable_compact(*changes.pop("compact"))
    for name, value in changes.items():
        getattr(builder, f"with_{name}")(value)
    sink: FileSink[str] = pickle.loads(pickle.dumps(builder.build()))
    return sink


def writer_of(sink: FileSink[str], subtask: int = 0) -> SinkWriter[str]:
    return sink.create_writer(cast("Any", Subtask(subtask)))


def written(
    sink: FileSink[str], *records: str, subtask: int = 0, checkpoint_id: int | None = None
) -> list[Any]:
    writer = writer_of(sink, subtask)
    for record in records:
        writer.write(record, None)
    writer.flush(end_of_input=True)
    committables = list(writer.prepare_commit_of(checkpoint_id))
    writer.close()
    return cast("list[Any]", pickle.loads(pickle.dumps(committables)))


def commit(sink: FileSink[str], committables: list[Any]) -> None:
    committer = sink.create_committer()
    assert committer is not None
    committer.commit(committables)
    committer.close()


WRITER_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def visible(path: Path) -> list[tuple[str, str]]:
    """The names and contents of committed files; the random id of a writer is shown as ID."""
    files = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    shown = (file for file in files if file.parts[0] != STAGING)
    return sorted((WRITER_ID.sub("ID", str(file)), (path / file).read_text()) for file in shown)


def writer_with(sink: FileSink[str], lineage: str) -> SinkWriter[str]:
    context: Any = SimpleNamespace(
        get_index_of_this_subtask=lambda: 0, origin=SinkOrigin(lineage, "operator", "'files'")
    )
    return sink.create_writer(context)


def discard(sink: FileSink[str], lineage: str, confirm: Callable[[], None] = lambda: None) -> None:
    sink.create_committer().discard_orphans(SinkOrigin(lineage, "operator", "'files'"), confirm)
