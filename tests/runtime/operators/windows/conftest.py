"""Fixtures of the window operator tests: a harness around a WindowSpec, and a window function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.window import ProcessWindowFunction
from opchain.runtime.program.operator_specs import WindowSpec
from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LATE = OutputTag("late")


class Tell(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits the key, the window, and the numbers of its (key, number) records."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield key, context.window(), [number for _, number in elements]


def harness_of(
    assigner: Any, trigger: Any = None, *, harness: dict[str, Any] | None = None, **spec: Any
) -> KeyedOneInputOperatorHarness:
    """Windows over (key, number) records; late records are sent to the tag `late`."""
    if not spec.keys() & {"reduce", "aggregate", "function"}:
        spec["function"] = Tell()
    window = WindowSpec(
        assigner=assigner,
        trigger=trigger or assigner.get_default_trigger(None),
        **{"late_tag": LATE, **spec},
    )
    return KeyedOneInputOperatorHarness(window, lambda record: record[0], **harness or {})


@pytest.fixture(scope="session")
def windows() -> Callable[..., KeyedOneInputOperatorHarness]:
    return harness_of


@pytest.fixture(scope="session")
def late() -> OutputTag[Any]:
    return LATE
