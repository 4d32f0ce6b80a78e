"""Kinesis: not supported. PyFlink: pyflink.datastream.connectors.kinesis."""

from __future__ import annotations

from typing import NoReturn

from opchain.runtime.connectors.refused_connector import refuse_name

_NAMES = frozenset(
    {
        "FlinkKinesisConsumer",
        "KinesisDeserializationSchema",
        "KinesisFirehoseSink",
        "KinesisFirehoseSinkBuilder",
        "KinesisShardAssigner",
        "KinesisStreamsSink",
        "KinesisStreamsSinkBuilder",
        "PartitionKeyGenerator",
        "WatermarkTracker",
    }
)


def __getattr__(name: str) -> NoReturn:
    refuse_name(name, _NAMES, __name__)
