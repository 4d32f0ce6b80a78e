"""Log lines of the Kafka client: an unreachable broker is logged once, not a thousand times."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.connectors.kafka.client import Brokers, KafkaConnectorError, _Once

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def refusing_address() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_an_unreachable_broker_is_logged_once(
    refusing_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("confluent_kafka")
    properties = {
        "bootstrap.servers": refusing_address,
        "group.id": "g",
        "default.api.timeout.ms": 3000,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 20,
    }
    brokers = Brokers(properties, "KafkaSource(orders)")
    with pytest.raises(KafkaConnectorError, match=f"{refusing_address} failed: Connection refused"):
        brokers.described(["orders"])
    lines = [record.getMessage() for record in caplog.records if record.name == "opchain.kafka"]
    assert len([line for line in lines if "Connection refused" in line]) == 1
    assert not [line for line in lines if "group.id" in line]


def test_a_log_line_that_only_counts_suppressed_lines_is_not_logged_again() -> None:
    failed = "FAIL [rdkafka#producer-2] Connection refused (after %s in state CONNECT%s)"
    logged = _Once()
    assert logged.filter(logging.makeLogRecord({"msg": failed % ("0ms", "")}))
    assert not logged.filter(
        logging.makeLogRecord({"msg": failed % ("7ms", ", 3 identical error(s) suppressed")})
    )
