"""Runs the tests of keyed state with each backend: the modules below refer to one backend class by name."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTRACT = frozenset(
    {
        "test_hash_map_backend",
        "test_hash_map_states",
        "test_incremental_cleanup",
        "test_keyed_changes",
        "test_keyed_snapshot",
        "test_ttl_states",
    }
)
HASH_MAP_ALONE = frozenset(
    {
        "test_values_are_not_copied",
        "test_the_error_names_a_value_that_cannot_be_pickled",
    }
)
NAME = HashMapKeyedStateBackend.__name__
HAS_ROCKSDB = importlib.util.find_spec("rocksdict") is not None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_property = hasattr(metafunc.function, "hypothesis")  # test_disk_backend has tests of its own
    if (
        metafunc.module.__name__.rpartition(".")[2] not in CONTRACT
        or metafunc.function.__name__ in HASH_MAP_ALONE
        or is_property
    ):
        return
    if "state_backend" in metafunc.fixturenames:
        rocksdb = pytest.param(
            "rocksdb", marks=pytest.mark.skipif(not HAS_ROCKSDB, reason="rocksdict is missing")
        )
        metafunc.parametrize("state_backend", ["hashmap", rocksdb], indirect=True)


@pytest.fixture(autouse=True)
def state_backend(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> Iterator[None]:
    """Replaces the backends of a module by the kind that the parameter names; closes disk backends."""
    if getattr(request, "param", "hashmap") == "hashmap":
        yield
        return
    from opchain.runtime.state.disk.disk_backend import DiskKeyedStateBackend  # noqa: PLC0415
    from opchain.runtime.state.disk.rocksdb import RocksDBTables  # noqa: PLC0415

    made: list[DiskKeyedStateBackend] = []
    folder = str(tmp_path_factory.getbasetemp() / "state")

    class InFolder(DiskKeyedStateBackend):
        def __init__(self, *args: Any, **options: Any) -> None:
            store = RocksDBTables((folder,), options.get("where", "the operator"))
            super().__init__(*args, store=store, **options)
            made.append(self)

    monkeypatch.setattr(request.module, NAME, InFolder)
    yield
    for backend in made:
        backend.close()
