from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, MapStateDescriptor
from opchain.runtime.state.operator_snapshot import ListMode
from opchain.runtime.state.operator_state import SubtaskStateStore

LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
RULES: MapStateDescriptor[Any, Any] = MapStateDescriptor("rules")


@pytest.fixture
def store() -> SubtaskStateStore:
    return SubtaskStateStore("'rules' (job.py:3)")


def test_a_list_state_needs_no_key(store: SubtaskStateStore) -> None:
    state = store.get_list_state(LIST)
    assert list(state.get()) == []
    state.add(1)
    state.add_all([2, None])
    assert list(state) == [1, 2, None]
    state.add_all(state.get())
    assert len(list(state.get())) == 6
    state.update([3])
    assert list(state.get()) == [3]
    state.clear()
    assert list(state.get()) == []
    assert store.get_list_state(LIST) is state


def test_a_broadcast_state_is_a_map(store: SubtaskStateStore) -> None:
    state = store.get_broadcast_state(RULES)
    assert state.is_empty()
    state.put_all({"b": 1})
    state.put_all([("a", None)])
    state["c"] = 3
    assert state.contains("a")
    assert (state.get("a"), state.get("missing"), state["b"]) == (None, None, 1)
    assert list(state.items()) == [("b", 1), ("a", None), ("c", 3)]
    for key in state:
        state.remove(key)
    assert list(state.keys()) == list(state.values()) == []
    state.put("d", 4)
    state.clear()
    assert state.is_empty()
    state.remove("missing")


def test_the_read_only_view_of_a_broadcast_state_shows_later_changes(
    store: SubtaskStateStore,
) -> None:
    state = store.get_broadcast_state(RULES)
    reader = state.read_only()
    state.put("a", 1)
    assert reader.get("a") == 1
    assert "a" in reader
    assert list(reader) == ["a"]
    assert list(reader.values()) == [1]
    assert not reader.is_empty()
    assert not hasattr(reader, "put")
    with pytest.raises(StateError, match="process_broadcast_element"):
        reader.clear()
    for name in ("put", "put_all", "remove"):
        with pytest.raises(AttributeError, match="process_broadcast_element"):
            getattr(reader, name)
    assert store.get_broadcast_state(RULES).get("a") == 1


def test_iterators_return_the_entries_at_their_creation(store: SubtaskStateStore) -> None:
    state = store.get_broadcast_state(RULES)
    reader = state.read_only()

    def shown() -> Any:
        return list(reader.items()), list(reader.keys()), list(reader.values())

    assert shown() == ([], [], [])
    changes: list[tuple[Any, dict[str, int]]] = [
        (lambda: state.put("a", 1), {"a": 1}),
        (lambda: state.put("a", 2), {"a": 2}),
        (lambda: state.put_all({"b": 3}), {"a": 2, "b": 3}),
        (lambda: state.remove("a"), {"b": 3}),
        (state.clear, {}),
        (lambda: state.put("c", 4), {"c": 4}),
    ]
    for change, entries in changes:
        earlier, before = reader.items(), list(reader.items())
        change()
        assert shown() == (list(entries.items()), list(entries), list(entries.values()))
        assert shown() == (list(state.items()), list(state.keys()), list(state.values()))
        assert list(earlier) == before


def test_registered_names_are_listed(store: SubtaskStateStore) -> None:
    store.get_list_state(LIST)
    store.get_union_list_state(ListStateDescriptor("union"))
    store.get_broadcast_state(RULES)
    assert store.get_registered_state_names() == {"list", "union"}
    assert store.get_registered_broadcast_state_names() == {"rules"}


def test_a_list_and_a_broadcast_state_may_have_the_same_name(store: SubtaskStateStore) -> None:
    store.get_list_state(ListStateDescriptor("same")).add(1)
    assert store.get_broadcast_state(MapStateDescriptor("same")).is_empty()


def test_requesting_a_name_for_another_kind_of_state_is_an_error(store: SubtaskStateStore) -> None:
    store.get_list_state(LIST)
    store.get_broadcast_state(RULES)
    with pytest.raises(
        StateError, match=r"'rules' \(job.py:3\): list state 'list' .* as split, .* union"
    ):
        store.get_union_list_state(LIST)
    with pytest.raises(StateError, match="list state 'list' is registered as"):
        store.get_list_state(ListStateDescriptor("list", Types.LONG()))
    with pytest.raises(StateError, match="broadcast state 'rules' is registered as"):
        store.get_broadcast_state(MapStateDescriptor("rules", Types.LONG()))


def test_all_operator_states_are_restored(store: SubtaskStateStore) -> None:
    store.get_list_state(LIST).add_all([1, [2]])
    store.get_union_list_state(ListStateDescriptor("union")).add("u")
    store.get_broadcast_state(RULES).put("a", [1])
    snapshot = store.snapshot()
    store.get_broadcast_state(RULES).put("b", 2)
    assert {name: mode for name, (mode, _) in snapshot.lists.items()} == {
        "list": ListMode.SPLIT,
        "union": ListMode.UNION,
    }
    restored = SubtaskStateStore()
    restored.restore(snapshot)
    assert list(restored.get_list_state(LIST).get()) == [1, [2]]
    assert list(restored.get_union_list_state(ListStateDescriptor("union")).get()) == ["u"]
    assert list(restored.get_broadcast_state(RULES).items()) == [("a", [1])]


def test_restoring_a_list_with_another_mode_is_an_error(store: SubtaskStateStore) -> None:
    store.get_list_state(LIST).add(1)
    restored = SubtaskStateStore()
    restored.restore(store.snapshot())
    with pytest.raises(StateError, match="registered as split, but was requested as union"):
        restored.get_union_list_state(LIST)


def test_the_error_names_a_value_that_cannot_be_pickled(store: SubtaskStateStore) -> None:
    store.get_list_state(LIST).add(n for n in ())
    with pytest.raises(
        StateError, match=r"'rules' \(job.py:3\): operator state 'list' can't be saved"
    ):
        store.snapshot()


class Gone:
    """A class that does not exist any more when it is unpickled."""


@pytest.mark.parametrize("kind", ["list", "broadcast"])
def test_a_class_that_cannot_be_imported_is_named_with_its_state(
    store: SubtaskStateStore, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "list":
        store.get_list_state(ListStateDescriptor("visits")).add(Gone())
    else:
        store.get_broadcast_state(MapStateDescriptor("visits")).put(1, Gone())
    snapshot = store.snapshot()
    monkeypatch.delitem(globals(), "Gone")
    with pytest.raises(
        StateError,
        match=r"operator state 'visits' can't be read: objects of the class .*Gone can't",
    ):
        SubtaskStateStore("'count' (job.py:3)").restore(snapshot)
