"""Sources keep their places in Spark's log, even if their ids change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of

from opchain.common import WatermarkStrategy
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, EpochInput
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.epochs.delivered_sources import (
    DeliveredSource,
    in_checkpoint_order,
    stored_sources,
    unbounded_sources,
)
from opchain.runtime.errors import CheckpointError
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from collections.abc import Sequence

NUMBERS: Any = DataGeneratorSource(lambda number: number)
RATE: Any = SparkSource("rate", is_streaming=True)


def sources_of(
    *uids: str, of: Any = NUMBERS, uid_hash: str | None = None
) -> tuple[DeliveredSource, ...]:
    def draw(env: Any) -> None:
        for uid in uids:
            stream = env.from_source(of, WatermarkStrategy.no_watermarks(), uid).uid(uid)
            if uid_hash is not None:
                stream.set_uid_hash(uid_hash)
            stream.print()

    return unbounded_sources(job_of(draw))


def checkpoint_of(sources: Sequence[DeliveredSource], batch: int = 6) -> CheckpointMetadata:
    read = EpochInput(batch, unbounded=stored_sources(sources))
    return CheckpointMetadata(7, 0, "job", "run", input=read)


def uids(sources: Sequence[DeliveredSource]) -> list[str | None]:
    return [source.operator.uid for source in sources]


def test_sources_of_a_new_job_are_ordered_by_their_ids() -> None:
    found = sources_of("a", "b", "c")
    assert in_checkpoint_order(found, None) == found
    no_log = checkpoint_of(sources_of("x", "y"), batch=-1)
    assert in_checkpoint_order(found, no_log) == found
    before_places = CheckpointMetadata(7, 0, "job", "run")
    assert in_checkpoint_order(found, before_places) == found


@pytest.mark.parametrize("renamed", [f"new {number}" for number in range(8)])
def test_a_source_with_a_new_id_keeps_its_place(renamed: str) -> None:
    before = sources_of("a", "b", "c")
    found = in_checkpoint_order(sources_of("a", renamed, "c"), checkpoint_of(before))
    assert uids(found) == [renamed if uid == "b" else uid for uid in uids(before)]
    again = in_checkpoint_order(sources_of("a", renamed, "c"), checkpoint_of(found))
    assert again == found


def test_a_source_is_matched_by_its_uid_hash() -> None:
    before = sources_of("a", "b")
    (of_a,) = (item for item in before if item.operator.uid == "a")
    both = (
        *sources_of("renamed", uid_hash=of_a.operator.operator_id),
        *sources_of("also renamed"),
    )
    found = in_checkpoint_order(both, checkpoint_of(before))
    assert uids(found) == ["renamed" if uid == "a" else "also renamed" for uid in uids(before)]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (sources_of("a", "b", "c"), [r"'Source: c' \(.*\) is new"]),
        (sources_of("a"), [r"'Source: b' \(.*\) is gone"]),
        (sources_of("c", "d"), ["c' .* is new", "d' .* is new", "a' .* is gone", "b' .* is gone"]),
        ((*sources_of("a"), *sources_of("b", of=RATE)), ["'Source: b' .* is of another kind"]),
    ],
    ids=["one more", "one less", "two others", "another kind"],
)
def test_added_removed_and_changed_sources_are_refused(
    now: Sequence[DeliveredSource], told: list[str]
) -> None:
    with pytest.raises(
        CheckpointError, match="checkpoint 7 of 'job': its unbounded sources have changed"
    ) as caught:
        in_checkpoint_order(now, checkpoint_of(sources_of("a", "b")))
    for text in told:
        assert caught.match(text)
