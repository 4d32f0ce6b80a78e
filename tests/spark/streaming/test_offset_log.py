from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.epochs.input_log import last_offset

if TYPE_CHECKING:
    from pathlib import Path

LOG = 'v1\n{{"batchWatermarkMs":0}}\n{{"positions":[{}],"due":0}}\n{{"logOffset":7}}\n-'


def test_the_latest_micro_batch_is_read_from_the_log(tmp_path: Path) -> None:
    assert last_offset(str(tmp_path), "positions") is None
    (tmp_path / "offsets").mkdir()
    for number in (9, 10, 2):
        (tmp_path / "offsets" / str(number)).write_text(LOG.format(number))
        (tmp_path / "offsets" / f".{number + 90}.crc").write_bytes(b"\x00")
    assert last_offset(str(tmp_path), "positions") == {"positions": [10], "due": 0}
    assert last_offset(str(tmp_path), "elsewhere") is None
