from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.function import RuntimeContext
from opchain.runtime.functions.state import KeyedStateStore, OperatorStateStore

KEYED = {
    "get_state",
    "get_list_state",
    "get_map_state",
    "get_reducing_state",
    "get_aggregating_state",
}


@pytest.mark.parametrize(
    ("store", "methods"),
    [
        (KeyedStateStore, KEYED),
        (
            OperatorStateStore,
            {
                "get_broadcast_state",
                "get_list_state",
                "get_union_list_state",
                "get_registered_state_names",
                "get_registered_broadcast_state_names",
            },
        ),
    ],
)
def test_a_store_has_its_abstract_methods(store: Any, methods: set[str]) -> None:
    assert store.__abstractmethods__ == methods


def test_a_runtime_context_is_a_keyed_state_store() -> None:
    assert issubclass(RuntimeContext, KeyedStateStore)
    assert RuntimeContext.__abstractmethods__ >= KEYED
