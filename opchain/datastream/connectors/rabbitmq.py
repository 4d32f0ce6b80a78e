"""RabbitMQ: not supported. PyFlink: pyflink.datastream.connectors.rabbitmq."""

from __future__ import annotations

from typing import NoReturn

from opchain.runtime.connectors.refused_connector import refuse_name

_NAMES = frozenset(
    {
        "RMQConnectionConfig",
        "RMQSink",
        "RMQSource",
    }
)


def __getattr__(name: str) -> NoReturn:
    refuse_name(name, _NAMES, __name__)
