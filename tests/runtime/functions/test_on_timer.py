from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream.functions import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.functions.process_functions import has_on_timer


class WithTimers:
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


@pytest.mark.parametrize(
    "kind", [KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction]
)
def test_has_on_timer_is_true_if_on_timer_is_overridden_in_any_base_class(kind: Any) -> None:
    bare = type("Bare", (kind,), {})
    own = type("Own", (kind,), {"on_timer": WithTimers.on_timer})
    mixed = type("Mixed", (WithTimers, kind), {})
    below = type("Below", (own,), {})
    for function, expected in ((bare, False), (own, True), (mixed, True), (below, True)):
        function.__abstractmethods__ = frozenset()
        assert has_on_timer(function()) is expected


def test_other_functions_have_no_on_timer() -> None:
    assert not has_on_timer(len)
    assert not has_on_timer(type("Plain", (ProcessFunction,), {"process_element": None})())
