"""Sources at the head of a chain: reading splits, and legacy functions on a thread of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.timestamps_watermarks import TimestampsWatermarksOperator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.connectors.source import Source
    from opchain.runtime.task.vertex_program import OperatorProgram
    from opchain.runtime.watermark_strategy import WatermarkStrategy


class SourceOperator(TimestampsWatermarksOperator):
    """Reads this subtask's splits, batch by batch, under the source's watermark strategy.

    Flink: `SourceOperator`. One generator serves all splits of a subtask, which are read one after
    the other; Flink has one per split and takes their minimum.
    """

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] | None = getattr(program.spec, "watermark_strategy", None)
        return strategy

    @property
    def source(self) -> Source[Any]:
        """The connector."""
        spec = self.program.spec
        source: Source[Any] = getattr(spec, "source", None) or spec.function  # type: ignore[attr-defined]
        return source

    def batches(self) -> Iterator[Sequence[Any]]:
        """The records of this subtask's splits."""
        task = self.context.task
        source = self.source
        for split in source.splits(task.vertex.parallelism)[task.subtask]:
            yield from source.read(split, task.vertex.batch_size)


class LegacySourceOperator(SourceOperator):
    """Runs a SourceFunction, whose elements come from its own thread. Flink: `StreamSource`."""

    @property
    def function(self) -> Any:
        """The user's SourceFunction."""
        return self.program.spec.function  # type: ignore[attr-defined]

    def open(self) -> None:
        """Opens the function."""
        self.function.open(self.context.runtime_context)

    def close(self) -> None:
        """Closes the function."""
        self.function.close()
