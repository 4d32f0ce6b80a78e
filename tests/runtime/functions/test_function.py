from __future__ import annotations

from typing import Any

import pytest
from opchain.runtime.functions.function import DistributedCache, Function, RuntimeContext


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
