from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.input_log import files_to_read, require_log
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.checkpoint.storage import CheckpointStorage


def log(folder: Path) -> CheckpointStorage:
    """A log of two file streams, of which the second has a compacted log, and of another source."""
    files = {
        "offsets/6": ['{"positions":[],"due":0}', '{"logOffset":4}', '{"logOffset":8}'],
        "offsets/7": ['{"positions":[],"due":9}', '{"logOffset":6}', '{"logOffset":8}'],
        "offsets/8": ['{"positions":[],"due":9}', '{"logOffset":6}', '{"logOffset":9}'],
        "sources/1/5": [entry("a", 5), entry("b", 5)],
        "sources/1/6": [entry("c", 6)],
        "sources/2/9.compact": [*(entry(f"old-{n}", n) for n in range(9)), entry("d", 9)],
    }
    for name, lines in files.items():
        path = folder / "spark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = ["v1", "{}"] if name.startswith("offsets") else ["v1"]
        path.write_text("\n".join([*head, *lines]))
    (folder / "spark" / "offsets" / ".8.crc").write_bytes(b"\x00")
    return checkpoint_storage(str(folder))


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": f"file:/in/{path}", "timestamp": 1, "batchId": batch})


def test_the_files_of_begun_micro_batches_are_listed(tmp_path: Path) -> None:
    storage = log(tmp_path)
    assert list(files_to_read(storage, 8)) == []
    assert list(files_to_read(storage, 6)) == [
        (7, ["file:/in/a", "file:/in/b", "file:/in/c"]),
        (8, ["file:/in/d"]),
    ]


def test_a_job_without_begun_micro_batches_reads_no_files_again(tmp_path: Path) -> None:
    assert list(files_to_read(checkpoint_storage(str(tmp_path)), -1)) == []


def test_a_missing_or_outdated_log_is_refused(tmp_path: Path) -> None:
    require_log(checkpoint_storage(str(tmp_path)), -1)
    for done in (6, 8):
        require_log(log(tmp_path), done)
    with pytest.raises(CheckpointError, match=r"that of micro-batch 9, .*does not contain it"):
        require_log(log(tmp_path), 9)
    with pytest.raises(CheckpointError, match="restore both from one backup"):
        require_log(checkpoint_storage(str(tmp_path / "empty")), 0)
