"""Defaults and refusals are those that Flink 2.3's backends print."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.compiler.settings.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from opchain.runtime.errors import UnsupportedFeatureError


def test_state_backends_have_flinks_defaults() -> None:
    backend = EmbeddedRocksDBStateBackend()
    assert not backend.is_incremental_checkpoints_enabled()
    assert backend.get_db_storage_paths() == []
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    assert backend.get_options() is None
    assert backend.get_number_of_transfer_threads() == 4


def test_rocksdb_settings_can_be_set_and_read() -> None:
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths("file:///a//b", "/c/")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_number_of_transfer_threads(8)
    assert backend.is_incremental_checkpoints_enabled()
    assert backend.get_db_storage_paths() == ["/a/b", "/c"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert backend.get_number_of_transfer_threads() == 8
    backend.set_db_storage_paths()
    assert backend.get_db_storage_paths() == []


@pytest.mark.parametrize(
    ("path", "message"),
    [("rel", "'rel' must be absolute"), ("hdfs://a/b", "'hdfs://a/b' is not on a local disk")],
)
def test_rocksdb_storage_paths_must_be_local(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EmbeddedRocksDBStateBackend().set_db_storage_paths(path)


@pytest.mark.parametrize("threads", [0, -1])
def test_rocksdb_needs_at_least_one_transfer_thread(threads: int) -> None:
    with pytest.raises(ValueError, match=rf"set_number_of_transfer_threads\({threads}\)"):
        EmbeddedRocksDBStateBackend().set_number_of_transfer_threads(threads)


@pytest.mark.parametrize(
    "use",
    [
        lambda: EmbeddedRocksDBStateBackend("yes"),  # type: ignore[arg-type]
        lambda: EmbeddedRocksDBStateBackend().set_predefined_options("DEFAULT"),  # type: ignore[arg-type]
    ],
)
def test_state_backends_refuse_arguments_of_the_wrong_type(use: Any) -> None:
    with pytest.raises(TypeError, match=r"yes|DEFAULT"):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda: CustomStateBackend(None),
        lambda: EmbeddedRocksDBStateBackend().set_options("org.example.Factory"),
    ],
)
def test_state_backends_refuse_methods_that_need_java_objects(use: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match="no JVM of Flink runs here; use "):
        use()


def test_state_backends_compare_by_value_and_can_be_pickled() -> None:
    other = EmbeddedRocksDBStateBackend()
    other.set_number_of_transfer_threads(2)
    backends: list[StateBackend] = [HashMapStateBackend(), EmbeddedRocksDBStateBackend(), other]
    for backend in backends:
        copy = pickle.loads(pickle.dumps(backend))
        assert copy == backend
        assert hash(copy) == hash(backend)
        assert [one == backend for one in backends].count(True) == 1
    assert repr(backends[0]) == "HashMapStateBackend()"
    assert repr(other) == (
        "EmbeddedRocksDBStateBackend(incremental=None, paths=[], options=DEFAULT, "
        "transfer_threads=2)"
    )
