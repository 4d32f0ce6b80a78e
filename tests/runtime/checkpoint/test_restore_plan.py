"""Which state an operator restores: by uid hash, by id, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    StateDescription,
)
from opchain.runtime.checkpoint.restore_plan import (
    ProgramOperator,
    match_state,
    operators_of,
    plan_restore,
)
from opchain.runtime.errors import CheckpointError
from opchain.runtime.program.operator_specs import MapSpec
from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram, VertexProgram

A, B, C = "a" * 32, "b" * 32, "c" * 32
COUNT = OperatorMetadata(A, "count", "old.py:3", 0, 2, 128, uid="counts", is_keyed=True)
SOURCE = OperatorMetadata(B, "numbers", "old.py:1", 2, 1, 128)
METADATA = CheckpointMetadata(7, 0, "clicks", "run-1", operators=(COUNT, SOURCE))
NEW_COUNT = ProgramOperator(A, "count", "new.py:3", 4, 128, uid="counts")
NEW_SOURCE = ProgramOperator(B, "numbers", "new.py:1", 1, None)


def test_operators_are_matched_by_id() -> None:
    other = replace(NEW_COUNT, operator_id=C, name="other")
    plan = plan_restore(METADATA, [NEW_SOURCE, other, NEW_COUNT])
    assert plan.restored == ((NEW_SOURCE, SOURCE), (NEW_COUNT, COUNT))
    assert plan.new == (other,)
    assert plan.dropped == plan.refused == ()
    assert plan.stored_by_id == {A: COUNT, B: SOURCE}
    plan.require(allow_non_restored_state=False)


def test_a_uid_hash_is_matched_before_the_id() -> None:
    moved = replace(NEW_COUNT, operator_id=C, uid_hash=A)
    taking = replace(NEW_COUNT, name="taking")
    plan = plan_restore(METADATA, [taking, moved, NEW_SOURCE])
    assert plan.restored == ((moved, COUNT), (NEW_SOURCE, SOURCE))
    assert plan.new == (taking,)
    assert plan.stored_by_id[C] == COUNT


def test_an_operator_with_a_uid_hash_is_not_matched_by_its_id_too() -> None:
    plan = plan_restore(METADATA, [replace(NEW_COUNT, uid_hash=B)])
    assert [stored for _, stored in plan.restored] == [SOURCE]
    assert plan.dropped == (COUNT,)


def test_state_that_would_be_lost_is_named_in_the_error() -> None:
    plan = plan_restore(METADATA, [NEW_SOURCE])
    with pytest.raises(
        CheckpointError,
        match=r"can't start from checkpoint 7 of 'clicks': no operator claims the state of 'count' "
        rf"\(old.py:3, uid 'counts', id {A}\); give",
    ):
        plan.require(allow_non_restored_state=False)
    plan.require(allow_non_restored_state=True)


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (
            replace(NEW_COUNT, max_parallelism=64),
            (
                r"keyed state of 'count' \(new.py:3\) is stored in 128 key groups, and its max parallelism "
                r"is now 64: set_max_parallelism\(128\)"
            ),
        ),
        (
            replace(NEW_COUNT, parallelism=200, max_parallelism=None),
            r"too few for the 200 tasks that it now has: set_parallelism\(128\) or less",
        ),
    ],
)
def test_a_changed_number_of_key_groups_is_refused(operator: ProgramOperator, problem: str) -> None:
    plan = plan_restore(METADATA, [operator, NEW_SOURCE])
    with pytest.raises(CheckpointError, match=problem):
        plan.require(allow_non_restored_state=True)


def test_an_unset_max_parallelism_is_taken_from_the_checkpoint() -> None:
    operator = replace(NEW_COUNT, max_parallelism=None)
    assert plan_restore(METADATA, [operator, NEW_SOURCE]).refused == ()


def test_an_operator_without_keyed_state_may_change_its_max_parallelism() -> None:
    operator = replace(NEW_SOURCE, max_parallelism=4)
    assert plan_restore(METADATA, [operator, NEW_COUNT]).refused == ()


def test_a_state_of_a_changed_type_is_refused() -> None:
    before = replace(COUNT, states=(StateDescription("n", "ValueStateDescriptor", "Long"),))
    after = replace(NEW_COUNT, states=(StateDescription("n", "ValueStateDescriptor", "String"),))
    plan = plan_restore(replace(METADATA, operators=(before,)), [after])
    assert plan.refused == (
        "'count' (new.py:3): state 'n' was saved with type Long and has String",
    )


@pytest.mark.parametrize(
    ("state", "kind", "problem"),
    [
        ("window-timers", "keyed_process", "by a window, and the operator is now a function"),
        ("window-contents", "reduce", "by a window, and the operator is now a reduce"),
        ("_op_state", "window", "by a reduce, and the operator is now a window"),
        ("LEFT_BUFFER", "keyed_co_process", "by an interval join, and the operator is now a func"),
        ("count", "interval_join", "by a function, and the operator is now an interval join"),
        ("count", "map", None),
        ("_op_state", "reduce", None),
        ("window-contents", "window", None),
        ("window-contents", "guarded", None),
    ],
)
def test_keyed_state_of_another_kind_of_operator_is_refused(
    state: str, kind: str, problem: str | None
) -> None:
    before = replace(COUNT, states=(StateDescription(state, "table"),))
    plan = plan_restore(replace(METADATA, operators=(before,)), [replace(NEW_COUNT, kind=kind)])
    assert len(plan.refused) == (problem is not None)
    assert (problem or "") in "".join(plan.refused)


def job() -> JobProgram:
    operator = OperatorProgram(
        0, "count", A, "new.py:3", MapSpec(abs), -1, uid="counts", uid_hash=C
    )
    vertex = VertexProgram(A, "count", 4, 128, 0, (operator,))
    return JobProgram("clicks", (vertex,), ())


def test_a_compiled_job_is_matched_with_its_checkpoint() -> None:
    (found,) = operators_of(job())
    assert found == replace(NEW_COUNT, uid_hash=C, kind="map")
    with pytest.raises(CheckpointError, match="no operator claims the state of 'numbers'"):
        match_state(METADATA, job())
    plan = match_state(METADATA, job(), allow_non_restored_state=True)
    assert plan.dropped == (SOURCE,)


def test_a_changed_key_type_is_refused() -> None:
    before = replace(COUNT, key_types=("Integer",))
    stored = replace(METADATA, operators=(before, SOURCE))
    same = replace(NEW_COUNT, key_types=("Integer",))
    assert plan_restore(stored, [same, NEW_SOURCE]).refused == ()
    plan = plan_restore(stored, [replace(NEW_COUNT, key_types=("String",)), NEW_SOURCE])
    (refused,) = plan.refused
    assert refused.startswith(
        "keyed state of 'count' (new.py:3) was saved with keys of type Integer, and its keys now have type String:"
    )
    assert plan_restore(METADATA, [same, NEW_SOURCE]).refused == ()  # saved by an earlier version
