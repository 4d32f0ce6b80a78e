from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from opchain.runtime.connectors.local_path import local_path
from opchain.runtime.errors import UnsupportedFeatureError


def test_a_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = os.path.join(tmp_path, "a.txt")  # noqa: PTH118
    assert local_path("a.txt") == local_path(Path("a.txt")) == local_path(whole) == whole


def test_a_file_url_is_a_path() -> None:
    assert local_path("file:///data/a%20b.txt") == "/data/a b.txt"


@pytest.mark.parametrize("path", ["hdfs://host/a.txt", "s3://bucket/a.txt"])
def test_other_file_systems_are_refused_by_name(path: str) -> None:
    scheme = path.partition(":")[0]
    with pytest.raises(UnsupportedFeatureError, match=f"'{path}' is on '{scheme}'"):
        local_path(path)


@pytest.mark.parametrize("path", [5, b"a.txt", None])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a str or a Path|expected str"):
        local_path(path)
