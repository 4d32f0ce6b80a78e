from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.assign_operator_ids import every_operator_has_its_own_id, hash_of_uid
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan

FIRST_WITH_ONE_CHAINED = "cbc357ccb763df2852fee8c4fc7d55f2"
FIRST_WITH_NONE = "bc764cd8ddf7a0cff126f51c16239658"


def ids(plan: Plan) -> dict[str, str]:
    assert plan.stream_graph is not None
    assert plan.operator_ids is not None
    return {node.name: plan.operator_ids[node.id] for node in plan.stream_graph.nodes()}


def test_operator_ids_of_the_first_source_equal_flinks(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env, "in").map(str)
    assert ids(compiled(env))["Source: in"] == FIRST_WITH_ONE_CHAINED


def test_operator_ids_depend_on_chaining(env: Any, source: Any, compiled: Any) -> None:
    source(env, "in").rebalance().map(str)
    assert ids(compiled(env))["Source: in"] == FIRST_WITH_NONE


def test_operator_ids_do_not_depend_on_names_and_parallelism(
    env: Any, source: Any, compiled: Any
) -> None:
    env.set_parallelism(7)
    source(env, "in").map(str).name("renamed")
    assert ids(compiled(env))["Source: in"] == FIRST_WITH_ONE_CHAINED


def test_the_id_of_an_operator_with_a_uid_depends_only_on_the_uid(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str).uid("p\u00e4rse")
    found = ids(compiled(env))["Map"]
    assert found == hash_of_uid("p\u00e4rse").hex()
    assert len(found) == 32


def test_a_uid_changes_the_generated_ids_of_other_operators(
    env: Any, source: Any, compiled: Any
) -> None:
    """Without uid the last operator waits for "a"; with one it is hashed first, and "a" after it."""
    short, long = source(env, "short"), source(env, "long")
    last = short.union(long.map(str).name("a")).map(str).name("last")
    without = ids(compiled(env))
    last.uid("kept")
    with_uid = ids(compiled(env))
    assert len(set(without.values())) == len(without)
    assert {name for name in without if without[name] != with_uid[name]} == {"a", "last"}


def test_two_operators_with_the_same_uid_are_refused(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(str).name("a").uid("same").map(str).name("b").uid("same")
    with pytest.raises(JobGraphError) as raised:
        compiled(env)
    assert raised.value.phase == "job_graph"
    assert str(raised.value).startswith("'b' (test_assign_operator_ids.py:")
    assert "has the uid 'same' of 'a' (test_assign_operator_ids.py:" in str(raised.value)


@pytest.mark.parametrize("change", ["missing", "equal"])
def test_the_invariant_finds_missing_and_duplicate_operator_ids(
    env: Any, source: Any, compiled: Any, change: str
) -> None:
    source(env).map(str)
    plan = compiled(env)
    broken = dict(plan.operator_ids)
    broken[2] = broken[1]
    if change == "missing":
        del broken[2]
    with pytest.raises(InternalError, match=r"no operator id|the same operator id"):
        every_operator_has_its_own_id(replace(plan, operator_ids=broken))
