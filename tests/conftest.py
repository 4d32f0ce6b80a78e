"""What holds for all tests: how Hypothesis works, and that no test needs another to run before it."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

# A deadline would make results depend on what else the machine does.
settings.register_profile("opchain", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
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
