from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Duration, WatermarkStrategy
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.epochs.event_time import sources_ahead
from opchain.runtime.epochs.source_positions import POSITIONS, SourcePositions

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.datastream import StreamExecutionEnvironment

ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)


def names_ahead(run: EpochRun, outcome: Any) -> list[str]:
    ahead = sources_ahead(run.job, outcome.metrics)
    return sorted(
        operator.uid
        for vertex in run.job.vertices
        for operator in vertex.all_operators
        if operator.operator_id in ahead
    )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_sources_ahead_of_their_alignment_group_wait(tmp_path: Path, parallelism: int) -> None:
    first, other = (
        ASCENDING.with_watermark_alignment(group, Duration.of_millis(10)) for group in "ab"
    )
    unaware: Any = WatermarkStrategy.no_watermarks()

    def draw(env: StreamExecutionEnvironment) -> None:
        streams = [
            given(env, name, strategy)
            for name, strategy in (
                ("x", first),
                ("y", first),
                ("z", other),
                ("none", unaware.with_watermark_alignment("a", Duration.of_millis(1))),
                ("alone", ASCENDING),
            )
        ]
        seen(streams[0].union(*streams[1:]), "out")

    run = EpochRun(draw, tmp_path, parallelism)
    # No source may run ahead of a source that has no watermark yet.
    assert names_ahead(run, run.run(x=[5, 6], z=[1000, 1001], alone=[9, 9]).outcome) == ["x"]
    assert names_ahead(run, run.run(y=[1, 2]).outcome) == []
    assert names_ahead(run, run.run(y=[30, 31]).outcome) == ["y"]
    assert names_ahead(run, run.run(x=[21, 21]).outcome) == []
    run.close()


def test_an_idle_source_does_not_hold_its_alignment_group_back(tmp_path: Path) -> None:
    idle = ASCENDING.with_idleness(Duration.of_millis(100))
    strategy = idle.with_watermark_alignment("group", Duration.of_millis(10))

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(given(env, "x", strategy).union(given(env, "y", strategy)), "out")

    run = EpochRun(draw, tmp_path)
    assert names_ahead(run, run.run(0, x=[50]).outcome) == ["x"]
    assert names_ahead(run, run.run(101, x=[51]).outcome) == []
    run.close()


def test_a_generator_does_not_catch_up_after_waiting_for_its_alignment_group() -> None:
    source: DataGeneratorSource[int] = DataGeneratorSource(int, None, 100)
    positions = SourcePositions([(0, source, 1)])
    start = positions.initial(1000)
    assert positions.latest(start, 2000)[POSITIONS][0][0] == 100
    assert positions.latest(start, 2000, waiting={0: ()}) == start
    assert positions.latest(start, 2100)[POSITIONS][0][0] == 10
