"""StreamingFileSink: PyFlink's old name of a FileSink."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.functions.source_sink_functions import SinkFunction

if TYPE_CHECKING:
    import os

    from opchain.runtime.connectors.file_buckets import RollingPolicy
    from opchain.runtime.types.serialization import BulkWriterFactory, Encoder


class StreamingFileSink(SinkFunction):
    """A FileSink that a program gives to `add_sink`. PyFlink calls it deprecated: use FileSink.

    Flink: StreamingFileSink.
    """

    def __init__(self, file_sink: FileSink[Any]) -> None:
        warnings.warn(
            "StreamingFileSink is deprecated: pass a FileSink to sink_to()",
            DeprecationWarning,
            stacklevel=3,
        )
        self.file_sink = file_sink

    def invoke(self, value: Any, context: Any) -> None:
        """Is never called: `add_sink` takes the FileSink."""
        raise AssertionError(
            f"{value!r} was given to the function of a StreamingFileSink, {context}"
        )

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: Encoder[Any]
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Begins a sink that encodes records one by one."""
        return StreamingFileSink.DefaultRowFormatBuilder(str(base_path), encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory[Any]
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Begins a sink that writes whole files."""
        return StreamingFileSink.DefaultBulkFormatBuilder(str(base_path), writer_factory)

    BaseBuilder = FileSink.BaseBuilder

    class DefaultRowFormatBuilder(FileSink.RowFormatBuilder):
        """FileSink's builder with another product."""

        def with_rolling_policy(self, policy: RollingPolicy) -> Any:
            """Decides when a file is complete."""
            return super().with_rolling_policy(policy)

        def build(self) -> StreamingFileSink:  # type: ignore[override]
            """The sink."""
            return StreamingFileSink(super().build())

    class DefaultBulkFormatBuilder(FileSink.BulkFormatBuilder):
        """FileSink's builder with another product."""

        def with_rolling_policy(self, policy: RollingPolicy) -> Any:
            """Decides when a file is complete."""
            return super().with_rolling_policy(policy)

        def build(self) -> StreamingFileSink:  # type: ignore[override]
            """The sink."""
            return StreamingFileSink(super().build())
