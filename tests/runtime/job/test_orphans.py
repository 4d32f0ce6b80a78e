from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of
from shared_lists import SharedList

from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.functions.sink import Committer, SinkOrigin
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction
from opchain.runtime.job.orphans import (
    abort_epoch,
    can_have_orphans,
    discard_orphans,
    discarded_on_failure,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class NotingSink(DiscardingSink):
    """Records the calls of its committers."""

    def __init__(self) -> None:
        self.noted = SharedList()

    @property
    def has_committer(self) -> bool:
        return True

    def create_committer(self) -> Committer:
        return NotingCommitter(self.noted)


class HidingNothing(NotingSink):
    def create_committer(self) -> Committer:
        return PlainCommitter()


class PlainCommitter(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        raise AssertionError("nothing is committed")


class NotingCommitter(Committer):
    def __init__(self, noted: list[Any]) -> None:
        self.noted = noted

    def commit(self, committables: Sequence[Any]) -> None:
        raise AssertionError("nothing is committed")

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        self.noted.append((origin.lineage, origin.where[:7]))
        if origin.lineage == "broken":
            raise OSError("no way")

    def abort(self, checkpoint_id: int) -> None:
        self.noted.append(checkpoint_id)

    def close(self) -> None:
        self.noted.append("closed")


def job_with(sink: NotingSink) -> Any:
    def draw(env: Any) -> None:
        numbers = env.from_collection([1])
        numbers.sink_to(sink).name("first")
        numbers.add_sink(TwoPhaseSinkFunction(sink)).name("other")
        numbers.sink_to(DiscardingSink())
        numbers.print()

    return job_of(draw, "inlined")


def test_only_sinks_with_committers_can_have_orphans() -> None:
    assert can_have_orphans(job_with(NotingSink()))
    assert not can_have_orphans(
        job_of(lambda env: env.from_collection([1]).sink_to(DiscardingSink()), "inlined")
    )


def test_a_committer_without_discard_orphans_has_no_orphans() -> None:
    assert not can_have_orphans(job_with(HidingNothing()))


def test_each_sink_with_a_committer_discards_its_orphans_once() -> None:
    sink = NotingSink()
    discard_orphans(job_with(sink), "lineage")
    assert sorted(map(str, sink.noted)) == sorted(
        map(str, [("lineage", "'first:"), "closed", ("lineage", "'Sink: "), "closed"])
    )


def test_orphans_are_discarded_only_if_the_job_fails() -> None:
    sink = NotingSink()
    job = job_with(sink)
    with discarded_on_failure(job, "lineage"):
        pass
    assert sink.noted == []
    with pytest.raises(ValueError, match="of the job"), discarded_on_failure(job, "lineage"):
        raise ValueError("of the job")
    assert len(sink.noted) == 4


def test_an_error_of_the_clean_up_is_added_to_the_failure_of_the_job() -> None:
    with (
        pytest.raises(ValueError, match="of the job") as failed,
        discarded_on_failure(job_with(NotingSink()), "broken"),
    ):
        raise ValueError("of the job")
    assert failed.value.__notes__ == ["and then sinks could not clean up: OSError: no way"]  # type: ignore[attr-defined]


def test_each_sink_is_notified_of_a_failed_epoch() -> None:
    sink = NotingSink()
    abort_epoch(job_with(sink), 7, ValueError())
    assert sink.noted == [7, "closed", 7, "closed"]
