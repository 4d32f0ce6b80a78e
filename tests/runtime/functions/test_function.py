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


def test_open_and_close_may_be_left_out() -> None:
    class Bare(Function):
        pass

    Bare().open(None)  # type: ignore[arg-type]
    Bare().close()


def test_the_metric_group_has_both_spellings() -> None:
    group = object()
    context: Any = type(
        "Context",
        (RuntimeContext,),
        {name: lambda *_: None for name in RuntimeContext.__abstractmethods__}
        | {"get_metrics_group": lambda _: group},
    )()
    assert context.get_metric_group() is context.get_metrics_group() is group


@pytest.mark.parametrize("contract", [RuntimeContext, DistributedCache])
def test_contracts_are_abstract(contract: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        contract()


def test_accumulators_are_asked_for_by_name() -> None:
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
def test_only_what_overrides_open_or_close_has_a_lifecycle(function: Any, expected: bool) -> None:
    assert has_lifecycle(function) is expected
