"""Sources at the head of a chain: reading splits, and legacy functions on a thread of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.fed_source import FedSource
from opchain.runtime.functions.source import SourceReaderContext
from opchain.runtime.operators.timestamps_watermarks import TimestampsWatermarksOperator
from opchain.runtime.records.elements import LatencyMarker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.functions.source import Source
    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.watermarks.strategy import WatermarkStrategy


class SourceOperator(TimestampsWatermarksOperator):
    """Reads this subtask's splits, batch by batch, under the source's watermark strategy.

    Flink: `SourceOperator`. One generator serves all splits of a subtask, which are read one after
    the other; Flink has one per split and takes their minimum.

    Attributes:
        hand_over: Emits the records that still gather to a batch, so that no marker overtakes them.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.hand_over: Callable[[], None] | None = None

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] | None = getattr(program.spec, "watermark_strategy", None)
        return strategy

    @property
    def source(self) -> Source[Any]:
        """The connector."""
        spec = self.program.spec
        source: Source[Any] = getattr(spec, "source", None) or spec.function  # type: ignore[attr-defined]
        return source

    def open(self) -> None:
        """Makes assigner and generator; opens the source; sends latency markers where they are asked for."""
        super().open()
        self.source.open(_ReaderContext(self))
        self.send_latency_markers()

    def send_latency_markers(self) -> None:
        """Sends a marker now and every `metrics.latency.interval`.

        A task that stands still, between two epochs say, owes one marker afterwards and not one per interval.
        Flink: `LatencyMarkerEmitter`, at a fixed rate.
        """
        interval_ms = self.context.task.vertex.latency_interval_ms
        if interval_ms > 0:
            self.context.mailbox.execute(self._send_latency_marker, "latency marker")
            self.context.marker_time.schedule_with_fixed_delay(
                self._send_latency_marker, interval_ms, interval_ms
            )

    def _send_latency_marker(self, _at_ms: int = 0) -> None:
        if self.hand_over is not None:
            self.hand_over()
        now_ms = self.context.marker_time.current_processing_time()
        marker = LatencyMarker(now_ms, self.program.operator_id, self.context.task.subtask)
        self.output.emit_latency_marker(marker)

    def batches(self) -> Iterator[Sequence[Any]]:
        """The records of this subtask's splits."""
        task = self.context.task
        source = self.source
        if isinstance(source, FedSource):
            yield from source.read(self.context.feed, task.vertex.batch_size)
            return
        for split in source.splits(task.vertex.parallelism)[task.subtask]:
            yield from source.read(split, task.vertex.batch_size)


class _ReaderContext(SourceReaderContext):
    """What the operator lets its source do."""

    def __init__(self, operator: SourceOperator) -> None:
        self._operator = operator

    def metric_group(self) -> MetricGroup:
        """The operator's."""
        group: MetricGroup = self._operator.context.metrics
        return group

    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Emits without a timestamp; dropped where nobody reads it."""
        self._operator.output.collect_to(tag.tag_id, value, None)


class LegacySourceOperator(SourceOperator):
    """Runs a SourceFunction, whose elements come from its own thread. Flink: `StreamSource`."""

    @property
    def function(self) -> Any:
        """The user's SourceFunction."""
        return self.program.spec.function  # type: ignore[attr-defined]

    def open(self) -> None:
        """Opens the function."""
        self.function.open(self.context.runtime_context)
        self.send_latency_markers()

    def run(self, context: Any) -> None:
        """Runs the function, in its own thread."""
        self.function.run(context)

    def close(self) -> None:
        """Closes the function."""
        self.function.close()
