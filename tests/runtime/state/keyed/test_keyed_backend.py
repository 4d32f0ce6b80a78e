from __future__ import annotations

import copy
import pickle

from opchain.runtime.functions.state import KeyedStateStore
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.keyed_backend import VOID, KeyedStateBackend
from opchain.runtime.windows.time_windows import TimeWindow


def test_void_is_a_singleton_after_pickling_and_copying() -> None:
    assert pickle.loads(pickle.dumps(VOID)) is VOID
    assert copy.deepcopy(VOID) is VOID
    assert repr(VOID) == "VOID"


def test_void_equals_no_window_and_no_key() -> None:
    assert TimeWindow(0, 1) != VOID
    assert VOID not in ("VOID", None, 0)
    assert len({VOID, TimeWindow(0, 1), None}) == 3


def test_the_hash_map_backend_implements_all_abstract_methods() -> None:
    backend = HashMapKeyedStateBackend()
    assert isinstance(backend, KeyedStateBackend)
    assert isinstance(backend, KeyedStateStore)
    for name in KeyedStateBackend.__annotations__:
        assert hasattr(backend, name)
