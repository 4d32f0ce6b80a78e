from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.files.file_range import list_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.txt",
        "a/c.txt",
        "a/.hidden",
        "a/_tmp/x.txt",
        "_SUCCESS",
        ".git/config",
        "a.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("",), ["a/c.txt", "a.txt", "b.txt"]),
        (("b.txt", "a"), ["b.txt", "a/c.txt"]),
        (("*",), ["a/c.txt", "a.txt", "b.txt"]),
        (("*.txt",), ["a.txt", "b.txt"]),
        (("**/*.txt",), ["a.txt", "a/c.txt", "b.txt"]),
        (("**",), ["a/c.txt", "a.txt", "b.txt"]),
        (("_SUCCESS",), ["_SUCCESS"]),
        (("_*",), ["_SUCCESS"]),
        (("_SUCC[E]SS",), ["_SUCCESS"]),
    ],
)
def test_paths_and_patterns_are_expanded_to_files(
    folder: Path, paths: tuple[str, ...], found: list[str]
) -> None:
    files = list_files([str(folder / path) if path else str(folder) for path in paths])
    assert [file.path for file in files] == [str(folder / name) for name in found]
    assert [file.size for file in files] == list(map(len, found))


def test_a_new_file_is_listed_the_next_time(folder: Path) -> None:
    known = set(list_files([str(folder)]))
    (folder / "a" / "new").write_text("new")
    assert [file.path for file in list_files([str(folder)]) if file not in known] == [
        str(folder / "a" / "new")
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "there is no file or folder '.*none'"),
        ("none*", r"no file matches the pattern '.*none\*'"),
    ],
)
def test_a_path_or_pattern_without_files_is_an_error(folder: Path, path: str, message: str) -> None:
    with pytest.raises(FileNotFoundError, match=message):
        list_files([str(folder / path)])
