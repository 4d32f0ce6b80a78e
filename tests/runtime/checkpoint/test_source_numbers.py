"""Sources whose position is in a checkpoint are read again only if that is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from forms import job_of

from opchain.common import WatermarkStrategy
from opchain.runtime.checkpoint.metadata import (
    NO_BATCH,
    CheckpointMetadata,
    EpochInput,
    StoredSource,
)
from opchain.runtime.checkpoint.restore_plan import ProgramOperator, match_state, operators_of
from opchain.runtime.checkpoint.source_numbers import (
    bounded_sources,
    match_sources,
    source_kind,
)
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.program.vertex_program import JobProgram

A, B, C = "a" * 32, "b" * 32, "c" * 32
NUMBERS = ProgramOperator(A, "numbers", "new.py:1", 1, None, source="positions")
ROWS = ProgramOperator(B, "rows", "new.py:2", 1, None, source="DataFrame")
COUNT = ProgramOperator(C, "count", "new.py:3", 1, None)


def mixed(*uids: str, uid_hash: str | None = None, has_bounded: bool = True) -> JobProgram:
    def draw(env: StreamExecutionEnvironment) -> None:
        source = DataGeneratorSource(lambda number: number)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "endless").uid("endless").print()
        for uid in uids if has_bounded else ():
            bounded = env.from_collection([1, 2]).uid(uid)
            if uid_hash is not None:
                bounded.set_uid_hash(uid_hash)
            bounded.print()

    return job_of(draw)


def checkpoint_of(
    job: JobProgram, unbounded: tuple[StoredSource, ...] | None = None
) -> CheckpointMetadata:
    read = EpochInput(unbounded=unbounded, bounded=bounded_sources(job))
    return CheckpointMetadata(7, 0, "job", "run", input=read)


def test_source_kind_is_bounded_positions_or_none() -> None:
    kinds = [
        source_kind(operator.spec)
        for vertex in mixed("words").vertices
        for operator in vertex.operators
    ]
    assert sorted(kinds, key=str) == [None, None, "bounded", "positions"]


@pytest.mark.parametrize("now", [mixed("others"), mixed()], ids=["renamed", "removed"])
def test_a_bounded_source_that_was_read_is_not_read_again_by_default(
    now: JobProgram, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = checkpoint_of(mixed("words"))
    with pytest.raises(
        CheckpointError,
        match=r"'Source: .*' \(.*\) has been read, .*records come twice; to start anyway, set execution\.state-recovery\.ignore-unclaimed-state = true",
    ):
        match_state(metadata, now)
    assert not caplog.text
    match_state(metadata, now, allow_non_restored_state=True)
    assert "records come twice" in caplog.text


def test_a_bounded_source_is_matched_by_uid_or_hash_and_may_be_new() -> None:
    before = mixed("words")
    metadata = checkpoint_of(before)
    (stored,) = bounded_sources(before)
    for now in (before, mixed("others", uid_hash=stored.operator_id), mixed("words", "more")):
        assert match_sources(metadata, operators_of(now)).reread == ()


def test_without_sparks_log_sources_are_read_again_only_if_that_is_allowed() -> None:
    stored = (
        StoredSource(A, "positions", "'numbers' (old.py:1)"),
        StoredSource(B, "DataFrame", "'rows' (old.py:2)"),
    )
    metadata = checkpoint_of(mixed(), unbounded=stored)
    known = replace(metadata, input=replace(metadata.input, batch=6))
    assert match_sources(known, [ROWS, COUNT, NUMBERS]).order == (NUMBERS, ROWS)
    assert match_sources(known, [ROWS, COUNT, NUMBERS]).reread == ()
    lost = replace(metadata, input=replace(metadata.input, batch=NO_BATCH))
    # In another order, too: without a log the order does not matter.
    places = match_sources(lost, [ROWS, replace(NUMBERS, operator_id="d" * 32)])
    assert places.refused == ()
    (text,) = places.reread
    assert "'numbers' (old.py:1), 'rows' (old.py:2) are read from the beginning" in text
