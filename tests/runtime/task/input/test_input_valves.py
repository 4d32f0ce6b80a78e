from __future__ import annotations

from opchain.runtime.program.vertex_program import ChainedSourceProgram, InputProgram
from opchain.runtime.records.elements import MIN_WATERMARK, Watermark, WatermarkStatus
from opchain.runtime.task.input.watermark_valve import InputValves

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


def edge(number: int, base: int, producers: int, *, is_pointwise: bool = False) -> InputProgram:
    return InputProgram(number, base, producers, is_pointwise, True, f"edge {base}")


def test_the_edges_of_a_union_share_a_watermark_valve() -> None:
    valves = InputValves([edge(0, 0, 2), edge(0, 2, 1)], 0, 1)
    assert valves.combine(0, 0, Watermark(10)) == ()
    assert valves.combine(0, 1, Watermark(20)) == ()
    assert valves.combine(0, 2, Watermark(15)) == (Watermark(10),)
    assert valves.combine(0, 0, IDLE) == (Watermark(15),)
    assert valves.combine(0, 2, IDLE) == (Watermark(20),)
    assert valves.combine(0, 1, IDLE) == (IDLE,)
    assert valves.combine(0, 2, ACTIVE) == (ACTIVE,)


def test_each_input_has_its_own_watermark_valve() -> None:
    valves = InputValves([edge(0, 0, 1), edge(1, 1, 1)], 0, 1)
    assert valves.combine(0, 0, Watermark(10)) == (Watermark(10),)
    assert valves.watermark(0) == 10
    assert valves.watermark(1) == MIN_WATERMARK
    assert valves.combine(1, 1, IDLE) == (IDLE,)
    assert valves.combine(0, 0, Watermark(11)) == (Watermark(11),)


def test_a_valve_has_only_the_channels_that_its_subtask_reads() -> None:
    # Four producers, two consumers: subtask 1 reads producers 2 and 3.
    valves = InputValves([edge(0, 5, 4, is_pointwise=True)], 1, 2)
    assert valves.combine(0, 7, Watermark(3)) == ()
    assert valves.combine(0, 8, Watermark(4)) == (Watermark(3),)


def test_a_chained_source_is_a_channel_of_the_valve_of_its_input() -> None:
    source = ChainedSourceProgram(None, input_number=0, channel=-1)  # type: ignore[arg-type]
    valves = InputValves([edge(0, 0, 1), edge(1, 1, 1)], 0, 1, [source])
    assert valves.combine(0, -1, Watermark(10)) == ()
    assert valves.combine(0, 0, Watermark(7)) == (Watermark(7),)
    assert valves.combine(1, 1, Watermark(1)) == (Watermark(1),)
