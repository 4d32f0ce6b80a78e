from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from postgres_server import Server, postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def postgres(server: Server) -> Server:
    """A server without tables."""
    server.clear()
    return server
