from __future__ import annotations

from typing import Any

from forms import job_of

from opchain.compiler.codegen.lower.lowering import ChainTree


def draw(env: Any) -> None:
    numbers = env.from_sequence(0, 9).map(lambda x: x + 1)
    numbers.print()
    numbers.rebalance().print()
    numbers.filter(lambda x: x > 1).rebalance().print()


def test_the_chain_tree_has_the_children_and_outputs_of_the_vertex() -> None:
    vertex = job_of(draw).vertices[0]
    tree = ChainTree(vertex)
    source, mapped = vertex.operators[:2]
    assert tree.children(source) == [mapped]
    assert tree.outputs(source) == []
    assert [child.spec.kind for child in tree.children(mapped)] == ["legacy_sink", "filter"]
    assert tree.outputs(mapped) == [(1, vertex.outputs[1])]
    filtered = tree.children(mapped)[1]
    assert tree.outputs(filtered) == [(0, vertex.outputs[0])]


def test_timestamps_count_as_unread_if_no_operator_assigns_them() -> None:
    vertex = job_of(draw).vertices[0]
    tree = ChainTree(vertex)
    assert not any(tree.times_are_read(operator) for operator in vertex.operators)
