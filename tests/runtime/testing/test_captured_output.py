from __future__ import annotations

from opchain.datastream import OutputTag
from opchain.runtime.testing.operator_harness import CapturedOutput
from opchain.testing import EmittedRecord, EmittedWatermark


def test_captured_elements_keep_their_order() -> None:
    output = CapturedOutput()
    output.collect("a", 1)
    output.emit_watermark(5)
    output.collect_to("side", "b", None)
    output.emit_status(True)
    output.collect("c", None)
    assert output.elements == [EmittedRecord("a", 1), EmittedWatermark(5), EmittedRecord("c", None)]
    assert output.records() == [("a", 1), ("c", None)]
    assert output.records(OutputTag("side")) == [("b", None)]
    assert output.records(OutputTag("unused")) == []
    assert output.statuses == [True]


def test_clear_forgets_captured_elements() -> None:
    output = CapturedOutput()
    output.collect("a", 1)
    output.collect_to("side", "b", 1)
    output.emit_status(True)
    output.clear()
    assert (output.elements, output.by_tag, output.statuses) == ([], {}, [])
    output.collect("c", 2)
    assert output.records() == [("c", 2)]
