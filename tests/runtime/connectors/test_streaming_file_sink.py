"""StreamingFileSink writes what a FileSink with the same settings writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.common import Configuration, Encoder
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors import StreamingFileSink
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    OutputFileConfig,
    RollingPolicy,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_streaming_file_sink_writes_the_files_of_file_sink(tmp_path: Path) -> None:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    naming = OutputFileConfig.builder().with_part_prefix("old").with_part_suffix(".txt").build()
    builder = (
        StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.default_rolling_policy())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(naming)
    )
    with pytest.warns(DeprecationWarning, match="pass a FileSink to sink_to"):
        sink = builder.build()
    env.from_collection(["a", "b"]).add_sink(sink)
    env.execute()
    (written,) = tmp_path.rglob("old*.txt")
    assert written.read_text() == "a\nb\n"
