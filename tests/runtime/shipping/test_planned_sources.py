from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.runtime.functions.source import Source
from opchain.runtime.shipping.functions import ship_vertices, unship, with_planned_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Outside(Source[str]):
    """A source that lists its splits when it is planned."""

    def __init__(self, found: list[str]) -> None:
        self.found = found

    def planned(self, parallelism: int) -> Outside:
        if not self.found:
            return Outside([f"part {number} of {parallelism}" for number in range(parallelism)])
        raise FileNotFoundError(self.found[0])

    def splits(self, parallelism: int) -> Sequence[Sequence[str]]:
        return [[each] for each in self.found]

    def read(self, split: str, batch_size: int) -> Iterator[Sequence[str]]:
        yield [split]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_legacy", [True, False])
def test_a_source_is_planned_once(form: str, is_legacy: bool) -> None:
    def draw(env: Any) -> None:
        source = Outside([])
        stream = (
            env.create_input(source)
            if is_legacy
            else env.from_source(source, WatermarkStrategy.no_watermarks(), "outside")
        )
        seen(stream, "all")

    assert run_form(draw, form, parallelism=2).records("all") == ["part 0 of 2", "part 1 of 2"]


def test_an_error_while_planning_names_the_source() -> None:
    def draw(env: Any) -> None:
        source = env.from_source(Outside(["gone"]), WatermarkStrategy.no_watermarks(), "outside")
        seen(source, "all")

    job = job_of(draw, "interpreted")
    with pytest.raises(FileNotFoundError, match="gone") as failed:
        ship_vertices(job)
    (note,) = getattr(failed.value, "__notes__", [""])
    assert note.startswith("while planning 'Source: outside' (test_planned_sources.py:")


def test_other_operators_are_not_changed() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3).map(str), "all")

    job = job_of(draw, "interpreted")
    assert [with_planned_sources(vertex) for vertex in job.vertices] == list(job.vertices)
    assert unship(ship_vertices(job)[0]).name == job.vertices[0].name
