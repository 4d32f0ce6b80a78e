"""The log of offsets."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.epochs.input_log import checksums, log_offset, required_offset

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = b"v1\n" + b"x" * 700


def test_checksums_are_those_of_hadoop_files() -> None:
    # "123456789" is the usual test of a CRC-32.
    assert checksums(b"123456789") == b"crc\0" + struct.pack(">II", 512, 0xCBF43926)
    assert checksums(b"") == b"crc\0" + struct.pack(">I", 512)
    assert len(checksums(ENTRY)) == 8 + 2 * 4
    assert checksums(ENTRY, 1024)[8:] != checksums(ENTRY)[8:12]


def test_only_the_entry_of_the_first_micro_batch_is_replaced(tmp_path: Path) -> None:
    log = str(tmp_path)
    for position in (1, 2):
        log_offset(log, 0, {"positions": [position]}, 0)
    log_offset(log, 1, {"positions": [3]}, 0)
    with pytest.raises(FileExistsError):  # a replaced driver wakes
        log_offset(log, 1, {"positions": [4]}, 0)
    found = [required_offset(log, batch, "positions") for batch in (0, 1, 2)]
    assert found == [{"positions": [2]}, {"positions": [3]}, None]
