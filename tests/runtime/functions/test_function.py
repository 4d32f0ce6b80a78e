from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.function import (
    DistributedCache,
    Function,
    RuntimeContext,
    has_lifecycle,
)
from opchain.runtime.metrics.accumulators import LongCounter


def test_open_and_close_are_optional() -> None:
    class Bare(Function):
        pass

    Bare().open(None)  # type: ignore[arg-type]
    Bare().close()


def test_get_metric_group_and_get_metrics_group_are_the_same() -> None:
    group = object()
    context: Any = type(
        "Context",
        (RuntimeContext,),
        {name: lambda *_: None for name in RuntimeContext.__abstractmethods__}
        | {"get_metrics_group": lambda _: group},
    )()
    assert context.get_metric_group() is context.get_metrics_group() is group


@pytest.mark.parametrize("contract", [RuntimeContext, DistributedCache])
def test_runtime_context_and_distributed_cache_are_abstract(contract: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        contract()


def test_get_accumulator_finds_accumulators_by_name_and_type() -> None:
    counter = LongCounter()
    context: Any = type(
        "Context",
        (RuntimeContext,),
        {name: lambda *_: None for name in RuntimeContext.__abstractmethods__}
        | {"get_accumulators": lambda _: {"n": counter}},
    )()
    assert context.get_accumulator("n") is context.get_long_counter("n") is counter
    assert context.get_accumulator("m") is None
    with pytest.raises(TypeError, match="'n' is a LongCounter, but was requested as IntCoun"):
        context.get_int_counter("n")


class Opened(Function):
    def open(self, runtime_context: RuntimeContext) -> None:
        pass


class Closed(Function):
    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("function", "expected"),
    [(Opened(), True), (Closed(), True), (Function(), False), (max, False), (lambda: 0, False)],
)
def test_has_lifecycle_is_true_if_open_or_close_is_overridden(
    function: Any, expected: bool
) -> None:
    assert has_lifecycle(function) is expected
