from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from async_wait_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def benches() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(function: Any, **settings: Any) -> Bench:
        made.append(Bench(function, **settings))
        return made[-1]

    yield make
    for bench in made:
        bench.close()
