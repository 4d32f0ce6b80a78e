"""The generated lines for timestamps. tests/runtime/operators/test_timestamps_watermarks.py tests their effect."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from forms import job_of

from opchain.common import WatermarkStrategy
from opchain.common.time import Duration
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.connectors.collection import NumberSequenceSource

MONOTONOUS: Any = WatermarkStrategy.for_monotonous_timestamps()


class Zero(TimestampAssigner[Any]):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 0


class Reads(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value


def module_of(strategy: Any, again: Any = None, **settings: Any) -> list[str]:
    """The generated lines of a source with a strategy, and maybe a second one behind it."""

    def draw(env: Any) -> None:
        stream = env.from_source(NumberSequenceSource(1, 9), strategy, "numbers")
        if again is not None:
            stream = stream.assign_timestamps_and_watermarks(again)
        stream.process(Reads()).print()

    source = job_of(draw, **settings).vertices[0].source
    assert source is not None
    return [line.split("  #")[0].strip() for line in source.splitlines()]


@pytest.mark.parametrize(
    ("assigner", "line"),
    [
        (lambda value, _: value * 2, "timestamp_0 = value * 2"),
        (lambda value, so_far: value + so_far, "timestamp_0 = value + NO_TIMESTAMP"),
        (lambda value, so_far: hash(so_far), "timestamp_0 = hash(NO_TIMESTAMP)"),
        (Zero(), "timestamp_0 = 0"),
    ],
)
def test_a_timestamp_assigner_is_inlined_or_called(assigner: Any, line: str) -> None:
    assert line in module_of(copy(MONOTONOUS).with_timestamp_assigner(assigner))


def test_a_timestamp_assigner_gets_the_old_timestamp_if_it_reads_it() -> None:
    first = copy(MONOTONOUS).with_timestamp_assigner(lambda value, _: value)
    second = copy(MONOTONOUS).with_timestamp_assigner(lambda value, so_far: so_far + so_far)
    so_far = "NO_TIMESTAMP if timestamp_0 is None else timestamp_0"
    lines = module_of(first, second)
    assert f"so_far_1 = {so_far}" in lines
    assert "timestamp_1 = so_far_1 + so_far_1" in lines


def test_without_an_assigner_the_old_timestamp_advances_the_watermark() -> None:
    first = copy(MONOTONOUS).with_timestamp_assigner(lambda value, _: value)
    lines = module_of(first, MONOTONOUS)
    assert "if timestamp_0 is not None and timestamp_0 > greatest_1:" in lines
    assert not any(line.startswith("timestamp_1") for line in lines)


def test_without_timestamps_no_watermark_code_is_generated() -> None:
    lines = module_of(MONOTONOUS)
    assert not any("timestamp_" in line or "greatest" in line for line in lines)


@pytest.mark.parametrize(
    ("strategy", "is_written_out"),
    [
        (MONOTONOUS, True),
        (WatermarkStrategy.no_watermarks(), True),
        (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)), True),
        (MONOTONOUS.with_idleness(Duration.of_millis(3)), True),
        (WatermarkStrategy.for_generator(lambda _: None), False),  # type: ignore[arg-type,return-value]
    ],
)
def test_generators_that_need_each_record_are_called(strategy: Any, is_written_out: bool) -> None:
    stamping = strategy.with_timestamp_assigner(lambda value, _: value)
    lines = module_of(stamping)
    assert ("op_0.saw(greatest_0)" in lines) is is_written_out
    assert ("source_0_0(value, None)" in lines) is not is_written_out
    batch = module_of(stamping, mode="BATCH")
    assert "timestamp_0 = value" in batch
    assert not any("greatest" in line for line in batch)


def test_the_greatest_timestamp_of_a_batch_is_reported_after_the_loop() -> None:
    lines = module_of(copy(MONOTONOUS).with_timestamp_assigner(lambda value, _: value))
    start, end = lines.index("greatest_0 = NO_TIMESTAMP"), lines.index("op_0.saw(greatest_0)")
    assert (
        start < lines.index("for value in values:") < lines.index("greatest_0 = timestamp_0") < end
    )
