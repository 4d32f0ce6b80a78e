from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.files.file_range import FileRange, divide_files
from opchain.runtime.files.file_systems import FileStatus


def test_after_starts_behind_the_records_that_were_read() -> None:
    part = FileRange("a", 5, 9)
    assert part.after(3).after(4) == FileRange("a", 5, 9, 7)


@given(
    sizes=st.lists(st.integers(0, 20), max_size=6),
    whole=st.sets(st.integers(0, 5)),
    parallelism=st.integers(1, 7),
)
def test_ranges_cover_every_byte_once_and_in_order(
    sizes: list[int], whole: set[int], parallelism: int
) -> None:
    files = [FileStatus(str(number), size) for number, size in enumerate(sizes)]
    parts = divide_files(files, parallelism, lambda path: int(path) not in whole)
    assert len(parts) == parallelism
    found = [
        (path, byte)
        for part in parts
        for path, start, stop, _ in part
        for byte in range(start, sizes[int(path)] if stop is None else stop)
    ]
    assert found == [(path, byte) for path, size in files for byte in range(size)]
    assert all(
        (stop is None) is (int(path) in whole) for part in parts for path, _, stop, _ in part
    )
    if not whole:
        shares = [sum((stop or 0) - start for _, start, stop, _ in part) for part in parts]
        assert max(shares) - min(shares) <= 1
