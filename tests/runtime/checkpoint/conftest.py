"""Fixtures shared by the checkpoint tests: storage on disk and in memory, and small checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def storage(tmp_path: Path) -> CheckpointStorage:
    return checkpoint_storage(str(tmp_path / "checkpoints"))


@pytest.fixture(params=["path", "file://", "memory://"])
def any_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStorage]:
    if request.param == "memory://":
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory")
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]
        yield checkpoint_storage("memory://jobs/count")
        memory.store.clear()
        return
    path = str(tmp_path / "checkpoints")
    yield checkpoint_storage(path if request.param == "path" else f"file://{path}")
