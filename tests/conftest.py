"""What holds for all tests: how Hypothesis works, and that no test needs another to run before it."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_broker import Kafka

# A deadline would make results depend on what else the machine does, and so would a limit for drawing.
any_speed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("opchain", any_speed)
settings.register_profile("ci", any_speed, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "opchain")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in another order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffles files, and the tests in each, so that fixtures of a module still serve it once."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    shuffled = random.Random(seed)
    places: dict[object, list[float]] = {}
    for item in items:
        places.setdefault(item.path, [shuffled.random()])
    items.sort(key=lambda item: (places[item.path], shuffled.random()))


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One broker for all tests that need no more."""
    from kafka_broker import running_kafka  # noqa: PLC0415 - few runs need it

    with running_kafka() as running:
        yield running
