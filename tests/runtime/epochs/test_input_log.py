"""The log of offsets."""

from __future__ import annotations

import struct

from opchain.runtime.epochs.input_log import checksums

ENTRY = b"v1\n" + b"x" * 700


def test_checksums_are_those_of_hadoop() -> None:
    # "123456789" is the usual test of a CRC-32.
    assert checksums(b"123456789") == b"crc\0" + struct.pack(">II", 512, 0xCBF43926)
    assert checksums(b"") == b"crc\0" + struct.pack(">I", 512)
    assert len(checksums(ENTRY)) == 8 + 2 * 4
    assert checksums(ENTRY, 1024)[8:] != checksums(ENTRY)[8:12]
