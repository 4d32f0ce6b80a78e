from __future__ import annotations

import pickle

import pytest

from opchain.runtime.job.client import JobID

HEX = "0123456789abcdef" * 2


def test_job_ids_are_compared_by_value() -> None:
    assert str(JobID(HEX)) == HEX
    assert JobID(HEX) == pickle.loads(pickle.dumps(JobID(HEX)))
    assert len({JobID(HEX), JobID(HEX)}) == 1


@pytest.mark.parametrize("text", ["", HEX[1:], HEX + "0", HEX.upper(), HEX[1:] + "g", None, 5])
def test_invalid_job_ids_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="32 lower-case hexadecimal digits"):
        JobID(text)  # type: ignore[arg-type]
