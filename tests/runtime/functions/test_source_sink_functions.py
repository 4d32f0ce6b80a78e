from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import pytest

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.functions.source_sink_functions import (
    ParallelSourceFunction,
    SinkFunction,
    SourceFunction,
)


class Recorder(SourceFunction.SourceContext[int]):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def collect(self, element: int) -> None:
        self.calls.append(("collect", element))

    def collect_with_timestamp(self, element: int, timestamp: int) -> None:
        self.calls.append(("collect", element, timestamp))

    def emit_watermark(self, timestamp: int) -> None:
        self.calls.append(("watermark", timestamp))

    def mark_as_temporarily_idle(self) -> None:
        self.calls.append(("idle",))

    def get_checkpoint_lock(self) -> nullcontext[None]:
        return nullcontext()


class UpTo(ParallelSourceFunction[int]):
    def __init__(self, end: int) -> None:
        self.end = end
        self.is_running = True

    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        for number in range(self.end):
            with ctx.get_checkpoint_lock():
                if not self.is_running:
                    return
                ctx.collect_with_timestamp(number, number * 10)
        ctx.emit_watermark(100)
        ctx.mark_as_temporarily_idle()

    def cancel(self) -> None:
        self.is_running = False


def test_a_source_function_collects_records() -> None:
    context = Recorder()
    UpTo(2).run(context)
    context.close()
    assert context.calls == [("collect", 0, 0), ("collect", 1, 10), ("watermark", 100), ("idle",)]


def test_a_source_function_can_be_cancelled_from_another_thread() -> None:
    source, context = UpTo(5), Recorder()
    canceller = threading.Thread(target=source.cancel)
    canceller.start()
    canceller.join()
    source.run(context)
    assert context.calls == []


def test_a_sink_function_gets_each_record() -> None:
    class Keep(SinkFunction):  # type: ignore[type-arg]
        def __init__(self) -> None:
            self.values: list[Any] = []

        def invoke(self, value: Any, context: Any) -> None:
            self.values.append(value)

    sink = Keep()
    sink.invoke(1, None)
    sink.finish()
    assert sink.values == [1]


def test_a_sink_function_of_java_is_refused() -> None:
    java: Any = SinkFunction
    with pytest.raises(UnsupportedFeatureError, match=r"use print\(\) or sink_to\(DiscardingSink"):
        java("org.apache.flink.streaming.api.functions.sink.legacy.DiscardingSink")


@pytest.mark.parametrize(
    ("contract", "methods"),
    [
        (SourceFunction, {"run", "cancel"}),
        (ParallelSourceFunction, {"run", "cancel"}),
        (SinkFunction, {"invoke"}),
        (SinkFunction.Context, {"current_processing_time", "current_watermark", "timestamp"}),
    ],
)
def test_source_and_sink_functions_have_their_abstract_methods(
    contract: Any, methods: set[str]
) -> None:
    assert contract.__abstractmethods__ == methods
