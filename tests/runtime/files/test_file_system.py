from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from opchain.runtime.files.file_systems import (
    FsspecFileSystem,
    LocalFileSystem,
    file_system_of,
    joined,
    name_of,
    qualified_path,
)


@pytest.mark.parametrize(
    ("path", "qualified"),
    [
        ("/tmp/../a", "/a"),  # noqa: S108 - nothing is written
        (Path("/a/b"), "/a/b"),
        ("file:///a%20b/c", "/a b/c"),
        ("file:/a", "/a"),
        ("a", os.path.abspath("a")),  # noqa: PTH100 - the documented result
        ("s3://bucket/a/../b", "s3://bucket/a/../b"),
    ],
)
def test_a_qualified_path_is_absolute(path: Any, qualified: str) -> None:
    assert qualified_path(path) == qualified


def test_bytes_are_refused_as_a_path() -> None:
    wrong: Any = b"a"
    with pytest.raises(TypeError, match="is bytes; it must be a str or a Path"):
        qualified_path(wrong)


def test_a_path_with_a_scheme_is_opened_by_fsspec() -> None:
    assert isinstance(file_system_of("/a"), LocalFileSystem)
    pytest.importorskip("fsspec")
    assert isinstance(file_system_of("memory://a"), FsspecFileSystem)


def test_joined_and_name_of_handle_slashes() -> None:
    assert joined("s3://bucket/", "a", "b") == "s3://bucket/a/b"
    assert joined("/", "a") == "/a"
    assert name_of("/a/b.txt") == "b.txt"
    assert name_of("/a/b/") == "b"
