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


def test_a_uid_outweighs_everything() -> None:
    before = [operator(1, "a", uid="x"), operator(2, "b", uid="y")]
    after = [operator(1, "a", uid="y"), operator(2, "b", uid="x", kind="filter")]
    assert pairs(before, after) == [(1, 2), (2, 1)]


def test_a_name_outweighs_a_generated_id() -> None:
    before = [operator(1, "parse"), operator(2, "clean")]
    after = [operator(1, "read"), operator(2, "parse"), operator(3, "clean")]
    matching = match_operators(before, after)
    assert [(m.before.name, m.after.name) for m in matching.matches] == [
        ("parse", "parse"),
        ("clean", "clean"),
    ]
    assert [added.name for added in matching.added] == ["read"]


def test_an_id_finds_what_was_renamed() -> None:
    before, after = [operator(1, "parse")], [operator(1, "read")]
    assert pairs(before, after) == [(1, 1)]


def test_an_id_does_not_find_another_kind_of_operator() -> None:
    matching = match_operators([operator(1, "parse")], [operator(1, "read", kind="reduce")])
    assert not matching.matches
    assert [removed.name for removed in matching.removed] == ["parse"]
    assert [added.name for added in matching.added] == ["read"]


def test_namesakes_keep_their_ids_and_else_their_order() -> None:
    before = [operator(1, "Map"), operator(2, "Map"), operator(3, "Map")]
    after = [operator(3, "Map"), operator(8, "Map"), operator(9, "Map")]
    assert pairs(before, after) == [(1, 8), (2, 9), (3, 3)]
