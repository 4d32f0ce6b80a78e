from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.state.disk.disk_backend import DiskKeyedStateBackend
from opchain.runtime.state.disk.rocksdb import RocksDBTables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[DiskKeyedStateBackend]:
    with closing(
        DiskKeyedStateBackend(
            store=RocksDBTables((str(tmp_path),), "the operator"), where="'x' (a.py:1)"
        )
    ) as made:
        made.set_current_key("k")
        yield made
