from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream.functions import SourceFunction
from opchain.runtime.connectors.collection import NumberSequenceSource
from opchain.runtime.functions.source import Source
from opchain.runtime.task.stream_task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Shares(Source[Any]):
    """Each subtask reads two splits; a record has the batch size, the split and the parallelism."""

    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        return [
            [(subtask, parallelism, n) for n in range(subtask)] for subtask in range(parallelism)
        ]

    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[Any]]:
        yield [(batch_size, *split)]


@pytest.mark.parametrize("form", FORMS)
def test_each_subtask_reads_its_splits(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_source(Shares(), WatermarkStrategy.no_watermarks(), "shares")
        seen(stream, "all")

    subtasks = run_form(draw, form, parallelism=3, batch_size=11).subtasks("all")
    assert {subtask: [value for value, _ in records] for subtask, records in subtasks.items()} == {
        0: [],
        1: [(11, 1, 3, 0)],
        2: [(11, 2, 3, 0), (11, 2, 3, 1)],
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "begin",
    [
        lambda env: env.from_collection([1, 2, 3]),
        lambda env: env.from_data(1, 2, 3),
        lambda env: env.from_sequence(1, 3),
        lambda env: env.generate_sequence(1, 3),
        lambda env: env.from_source(
            NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "n"
        ),
    ],
)
def test_sources_of_the_environment_emit_records_without_timestamps(begin: Any, form: str) -> None:
    ran = run_form(lambda env: seen(begin(env), "all"), form)
    assert ran.records("all") == [1, 2, 3]
    assert ran.timestamps("all") == [None] * 3


@pytest.mark.parametrize("form", FORMS)
def test_a_source_without_records_ends(form: str) -> None:
    def draw(env: Any) -> None:
        stream = env.from_source(Shares(), WatermarkStrategy.no_watermarks(), "shares")
        seen(stream.rebalance().map(str), "all")

    ran = run_form(draw, form, parallelism=1)
    assert ran.records("all") == []


class Lives(SourceFunction[int]):
    def __init__(self) -> None:
        self.log: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.log.append(f"open {runtime_context.get_index_of_this_subtask()}")

    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        self.log.append("run")

    def cancel(self) -> None:
        self.log.append("cancel")

    def close(self) -> None:
        self.log.append("close")


def test_a_source_function_is_opened_run_and_closed() -> None:
    function = Lives()
    task = StreamTask(job_of(lambda env: env.add_source(function).print()), 0, iter(()))
    assert task.chain.head.source is function  # type: ignore[attr-defined]
    list(task.run())
    assert function.log == ["open 0", "run", "cancel", "close"]
