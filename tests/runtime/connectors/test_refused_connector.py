from __future__ import annotations

from importlib import import_module

import pytest

from opchain.runtime.errors import UnsupportedFeatureError

FIRST_NAMES = {
    "cassandra": "CassandraSink",
    "dynamic_kafka": "DynamicKafkaSource",
    "elasticsearch": "Elasticsearch7SinkBuilder",
    "hybrid_source": "HybridSource",
    "kafka": "KafkaSource",
    "kinesis": "KinesisStreamsSink",
    "pulsar": "PulsarSource",
    "rabbitmq": "RMQSource",
}


@pytest.mark.parametrize("module", FIRST_NAMES)
def test_a_connector_that_is_not_here_is_refused_by_name(module: str) -> None:
    found = import_module(f"opchain.datastream.connectors.{module}")
    name = FIRST_NAMES[module]
    with pytest.raises(
        UnsupportedFeatureError, match=f"connectors.{module}.{name} is not supported"
    ):
        getattr(found, name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(found, "Nothing")  # noqa: B009 - a checker would object
