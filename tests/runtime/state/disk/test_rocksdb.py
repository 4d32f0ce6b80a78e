from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.errors import MissingLibraryError
from opchain.runtime.state.disk.rocksdb import PREFIX, RocksDBTables, remove_orphans

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("rocksdict")


def test_written_entries_are_read_and_scanned_in_both_directions(tmp_path: Path) -> None:
    database = RocksDBTables([str(tmp_path)], "'count' (job.py:3)")
    database.write([(b"a1", b"1"), (b"a2", b"2"), (b"b", b"3")], [])
    database.write([(b"a2", b"4")], [b"a1", b"nothing"])
    database.write([(b"a3", b"5")], [])
    assert (database.get(b"a1"), database.get(b"a2")) == (None, b"4")
    assert list(database.scan(b"a", b"b")) == [(b"a2", b"4"), (b"a3", b"5")]
    assert list(database.scan_back(b"b", b"a")) == [(b"b", b"3"), (b"a3", b"5"), (b"a2", b"4")]
    database.delete_range(b"a", b"b")
    assert list(database.scan(b"", b"z")) == [(b"b", b"3")]
    database.close()


def test_the_folder_is_removed_when_the_database_is_closed(tmp_path: Path) -> None:
    database = RocksDBTables([str(tmp_path / "new")], "x")
    assert database.folder.parent == tmp_path / "new"
    database.close()
    database.close()
    assert list((tmp_path / "new").iterdir()) == []


def test_folders_of_dead_processes_are_removed_and_those_in_use_are_kept(tmp_path: Path) -> None:
    code = (
        "import os, sys; from opchain.runtime.state.disk.rocksdb import RocksDBTables;"
        "RocksDBTables([sys.argv[1]], 'x').write([(b'a', b'b')], []); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, check=False
    )
    assert killed.returncode == -9
    (orphan,) = tmp_path.iterdir()
    (tmp_path / f"{PREFIX}of-somebody-else").mkdir()
    database = RocksDBTables([str(tmp_path)], "x")
    assert sorted(tmp_path.iterdir()) == sorted(
        [database.folder, tmp_path / f"{PREFIX}of-somebody-else"]
    )
    assert not orphan.exists()
    assert remove_orphans(tmp_path) == []
    database.close()


def test_the_error_about_a_missing_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(
        MissingLibraryError, match=r"'count' \(job.py:3\) keeps .* pip install 'opchain\[rocksdb\]'"
    ):
        RocksDBTables([str(tmp_path)], "'count' (job.py:3)")
    assert not list(tmp_path.iterdir())
