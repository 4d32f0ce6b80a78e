"""State files are read as they were written, and other files are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.checkpoint.state_files import MAGIC, decode, encode
from opchain.runtime.errors import CorruptCheckpointError
from opchain.runtime.state.keys.key_groups import KeyGroupRange
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
)

BY_GROUP = st.dictionaries(st.integers(0, 127), st.binary(max_size=20), max_size=4)
OPERATOR_STATE = st.builds(
    OperatorStateSnapshot,
    st.dictionaries(
        st.text(max_size=3),
        st.tuples(st.sampled_from(ListMode), st.lists(st.binary(max_size=5), max_size=3)),
        max_size=2,
    ),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=5), max_size=2),
)
SNAPSHOTS = st.builds(
    OperatorSnapshot, BY_GROUP, BY_GROUP, OPERATOR_STATE, is_changes=st.booleans()
)
STATES = st.dictionaries(st.text("0123456789abcdef", min_size=1, max_size=4), SNAPSHOTS, max_size=3)
SAMPLE = encode(7, 3, {"a" * 32: OperatorSnapshot({5: b"five"}, {6: b"six"})})


@given(STATES)
def test_a_state_file_is_read_as_it_was_written(states: dict[str, OperatorSnapshot]) -> None:
    file = decode(encode(7, 3, states), "a.state")
    assert (file.checkpoint_id, file.task) == (7, 3)
    assert file.snapshots() == states


@given(STATES, st.integers(0, 127), st.integers(0, 127))
def test_a_range_of_key_groups_is_read(
    states: dict[str, OperatorSnapshot], first: int, last: int
) -> None:
    groups = KeyGroupRange(min(first, last), max(first, last))
    found = decode(encode(7, 3, states), "a.state").snapshots(groups)
    for operator, state in states.items():
        part = found[operator]
        assert part.operator == state.operator
        for before, after in ((state.keyed, part.keyed), (state.timers, part.timers)):
            assert after == {group: data for group, data in before.items() if group in groups}


def test_a_file_of_another_version_is_refused() -> None:
    data = SAMPLE[: len(MAGIC)] + b"\x00\x09" + SAMPLE[len(MAGIC) + 2 :]
    with pytest.raises(CorruptCheckpointError, match=r"a\.state has format 9, but this version"):
        decode(data, "a.state")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", SAMPLE[1:]])
def test_a_file_of_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpointError, match="is not a state file of opchain"):
        decode(data, "a.state")


@pytest.mark.parametrize("length", range(len(MAGIC) + 2, len(SAMPLE)))
def test_a_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(CorruptCheckpointError, match=r"an unreadable index|sizes differ"):
        decode(SAMPLE[:length], "a.state")


def test_sections_whose_sizes_do_not_add_up_are_refused() -> None:
    with pytest.raises(CorruptCheckpointError, match="has parts whose sizes differ from its index"):
        decode(SAMPLE[: len(MAGIC) + 2] + b"more" + SAMPLE[len(MAGIC) + 2 :], "a.state")
