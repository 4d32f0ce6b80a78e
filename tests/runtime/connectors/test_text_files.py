from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.runtime.connectors.file_source import FileRange, TextLineSource
from opchain.runtime.files import line_blocks

if TYPE_CHECKING:
    from pathlib import Path


def lines_of(source: TextLineSource, parallelism: int, batch_size: int = 100) -> list[list[str]]:
    return [
        [line for split in part for batch in source.read(split, batch_size) for line in batch]
        for part in source.splits(parallelism)
    ]


def read(source: TextLineSource, parallelism: int = 1) -> list[str]:
    return [line for part in lines_of(source, parallelism) for line in part]


def universal_lines(text: str) -> list[str]:
    """The lines that Python reads from the text."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("\n", [""]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\r\nb\rc\n", ["a", "b", "c"]),
        ("a\x0bb\u2028c\n", ["a\x0bb\u2028c"]),
    ],
)
def test_line_ends_are_those_of_java(tmp_path: Path, text: str, lines: list[str]) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    for parallelism in range(1, 5):
        assert read(TextLineSource(file), parallelism) == lines


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(
    texts=st.lists(st.text(st.sampled_from("aä\n\r ")), max_size=3),
    parallelism=st.integers(1, 9),
    block_size=st.integers(1, 9),
    batch_size=st.integers(1, 3),
)
def test_every_line_is_read_once_for_any_split_of_the_files(
    tmp_path: Path, texts: list[str], parallelism: int, block_size: int, batch_size: int
) -> None:
    paths = [tmp_path / f"{number}.txt" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    if not paths:
        return
    source = TextLineSource(*paths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_SIZE", block_size)
        patch.setattr(line_blocks, "_SEARCH_SIZE", block_size)
        parts = lines_of(source, parallelism, batch_size)
    assert [line for part in parts for line in part] == [
        line for text in texts for line in universal_lines(text)
    ]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_blocks_contain_whole_lines_unchanged(tmp_path: Path, name: str, parallelism: int) -> None:
    content = "".join(f"line {number} ä\n" for number in range(20)).encode() + b"last"
    with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wb") as file:
        file.write(content)
    source = TextLineSource(tmp_path / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_SIZE", 30)
        blocks = [
            block
            for part in source.splits(parallelism)
            for split in part
            for block in source.read_blocks(split)
        ]
    assert b"".join(blocks) == content
    assert len(blocks) > 5
    assert all(block.endswith((b"\n", b"last")) for block in blocks)


def test_a_batch_has_at_most_the_requested_number_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a\n" * 7)
    source = TextLineSource(file)
    ((split,),) = source.splits(1)
    assert [len(batch) for batch in source.read(split, 3)] == [3, 3, 1]


def test_bytes_are_divided_evenly_over_all_files(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 30), ("c", 0)):
        (tmp_path / name).write_bytes(b"x\n" * (size // 2))
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert TextLineSource(tmp_path).splits(2) == [
        [FileRange(a, 0, 10), FileRange(b, 0, 10)],
        [FileRange(b, 10, 30)],
    ]


def test_folders_are_read_recursively_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.txt", "a/.hidden", "_SUCCESS", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert read(TextLineSource(tmp_path)) == ["a/c.txt", "b.txt"]
    assert read(TextLineSource(tmp_path / "_SUCCESS")) == ["_SUCCESS"]


def test_glob_patterns_match_files_and_folders(tmp_path: Path) -> None:
    for name in ("x1.txt", "x2.txt", "y.txt", "x3/z.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert read(TextLineSource(f"{tmp_path}/x*")) == ["x1.txt", "x2.txt", "x3/z.txt"]
    assert read(TextLineSource(f"{tmp_path}/**/z.txt")) == ["x3/z.txt"]


def test_an_existing_file_whose_name_looks_like_a_pattern_is_read(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("itself")
    (tmp_path / "a1.txt").write_text("other")
    assert read(TextLineSource(tmp_path / "a[1].txt")) == ["itself"]


@pytest.mark.parametrize("name", ["missing.txt", "missing*.txt"])
def test_the_error_names_a_missing_path_when_the_job_starts(tmp_path: Path, name: str) -> None:
    source = TextLineSource(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="missing"):
        source.splits(1)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".GZ", gzip.compress),
    ],
)
def test_a_compressed_file_is_read_by_one_subtask(
    tmp_path: Path, suffix: str, compress: Any
) -> None:
    text = "".join(f"line {number}\r\n" for number in range(1000))
    (tmp_path / f"a{suffix}").write_bytes(compress(text.encode()))
    parts = lines_of(TextLineSource(tmp_path), 3)
    assert [len(part) for part in parts] == [1000, 0, 0]
    assert parts[0][-1] == "line 999"


@pytest.mark.parametrize("charset", ["utf-16", "utf-32-le", "cp037"])
def test_a_character_set_with_other_line_ends_is_read_by_one_subtask(
    tmp_path: Path, charset: str
) -> None:
    (tmp_path / "a.txt").write_bytes("ä\nb\n".encode(charset))
    parts = lines_of(TextLineSource(tmp_path, charset_name=charset), 2)
    assert parts == [["ä", "b"], []]


def test_undecodable_bytes_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\xff\nb\n")
    assert read(TextLineSource(tmp_path)) == ["a\ufffd", "b"]


def test_an_unknown_character_set_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'klingon' is not a character set"):
        TextLineSource("a.txt", charset_name="klingon")


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert TextLineSource("a.txt").paths == (str(tmp_path / "a.txt"),)


def test_a_source_requires_a_path() -> None:
    with pytest.raises(ValueError, match="at least one path"):
        TextLineSource()


def test_a_text_source_can_be_pickled(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    source: TextLineSource = pickle.loads(pickle.dumps(TextLineSource(tmp_path)))
    assert read(source) == ["a"]
