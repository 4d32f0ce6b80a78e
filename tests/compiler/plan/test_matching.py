from opchain.compiler.plan.diff import match_operators
from opchain.compiler.plan.model import PlannedOperator


def operator(node: int, name: str, **facts: object) -> PlannedOperator:
    return PlannedOperator.model_validate(
        {"node": node, "id": f"{node:032x}", "name": name, "kind": "map", "parallelism": 1}
        | {"call_site": "job.py:1"}
        | facts
    )


def pairs(before: list[PlannedOperator], after: list[PlannedOperator]) -> list[tuple[int, int]]:
    matching = match_operators(before, after)
    return [(match.before.node, match.after.node) for match in matching.matches]


def test_operators_are_matched_by_uid_before_anything_else() -> None:
    before = [operator(1, "a", uid="x"), operator(2, "b", uid="y")]
    after = [operator(1, "a", uid="y"), operator(2, "b", uid="x", kind="filter")]
    assert pairs(before, after) == [(1, 2), (2, 1)]


def test_operators_are_matched_by_name_before_a_generated_id() -> None:
    before = [operator(1, "parse"), operator(2, "clean")]
    after = [operator(1, "read"), operator(2, "parse"), operator(3, "clean")]
    matching = match_operators(before, after)
    assert [(m.before.name, m.after.name) for m in matching.matches] == [
        ("parse", "parse"),
        ("clean", "clean"),
    ]
    assert [added.name for added in matching.added] == ["read"]


def test_a_renamed_operator_is_matched_by_its_generated_id() -> None:
    before, after = [operator(1, "parse")], [operator(1, "read")]
    assert pairs(before, after) == [(1, 1)]


def test_operators_of_different_kinds_are_not_matched_by_id() -> None:
    matching = match_operators([operator(1, "parse")], [operator(1, "read", kind="reduce")])
    assert not matching.matches
    assert [removed.name for removed in matching.removed] == ["parse"]
    assert [added.name for added in matching.added] == ["read"]


def test_operators_with_equal_names_are_matched_by_id_and_then_by_order() -> None:
    before = [operator(1, "Map"), operator(2, "Map"), operator(3, "Map")]
    after = [operator(3, "Map"), operator(8, "Map"), operator(9, "Map")]
    assert pairs(before, after) == [(1, 8), (2, 9), (3, 3)]
