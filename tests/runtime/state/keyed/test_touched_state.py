"""Keys and namespaces that may have changed since the last snapshot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.state.keyed.state_table import TouchedNamespaces, newest


@given(
    st.lists(st.integers(0, 9), unique=True), st.lists(st.tuples(st.booleans(), st.integers(0, 9)))
)
def test_applying_touched_keys_puts_added_keys_at_the_end(
    before: list[int], steps: list[tuple[bool, int]]
) -> None:
    live = dict.fromkeys(before)
    again = dict(live)
    touched = {}
    for is_put, key in steps:
        touched[key] = None
        if is_put:
            live[key] = None
        else:
            live.pop(key, None)
    last = newest(live, touched)
    assert last == list(live)[len(live) - len(last) :]
    for key in touched:
        if key not in live:
            again.pop(key, None)
    for key in last:
        again.pop(key, None)
        again[key] = None
    assert list(again) == list(live)


def test_touched_namespaces_are_recorded_and_cleared() -> None:
    touched = TouchedNamespaces()
    touched.note("w", 1)
    touched.note("w", 2)
    touched.note_dropped("v", [3])
    touched.note_dropped("v", [3, 4])
    assert touched.pairs == {"w": {1: None, 2: None}}
    assert touched.dropped == {"v": {3: None, 4: None}}
    touched.clear()
    assert touched.pairs == touched.dropped == touched.written_to == {}
