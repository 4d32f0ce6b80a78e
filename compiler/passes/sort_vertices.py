"""Chains and data sets -> the topological order of the vertices.

Flink: `JobGraph.getVerticesSortedTopologicallyFromSources`. There are many such orders; this is the
one that Flink prints, numbers and schedules by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import made
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def sort_vertices(plan: Plan) -> Plan:
    """Fills `vertex_order`.

    Vertices without inputs come first, in the order of creation. Then, from the start of that list,
    each adds the consumers of its data sets that have no producer left to come, and each of those
    its own at once.
    """
    chains = made(plan.chains)
    consumers = {
        head: [edge.target for data_set in sets for edge in data_set.edges]
        for head, sets in made(plan.data_sets).items()
    }
    missing = dict.fromkeys(consumers, 0)
    for targets in consumers.values():
        for target in targets:
            missing[target] += 1
    order = [chain.head for chain in chains if not missing[chain.head]]
    # Flink takes the vertices without inputs off its list before it looks at any consumer.
    for head in order:
        for target in consumers[head]:
            missing[target] -= 1
    for start in tuple(order):
        walks = [iter(consumers[start])]
        while walks:
            added = next((target for target in walks[-1] if missing[target] == 0), None)
            if added is None:
                walks.pop()
                continue
            missing[added] = -1  # listed: not to be added again
            order.append(added)
            for target in consumers[added]:
                missing[target] -= 1
            walks.append(iter(consumers[added]))
    return replace(plan, vertex_order=tuple(order))


def producers_come_first(plan: Plan) -> None:
    """The invariant: every vertex is listed once, behind all of its producers."""
    place = {head: number for number, head in enumerate(made(plan.vertex_order))}
    chains = made(plan.chains)
    if len(place) != len(chains) or len(made(plan.vertex_order)) != len(chains):
        raise InternalError("the topological order does not list every vertex once")
    for chain in chains:
        for edge in chain.outputs:
            if place[chain.head] >= place[edge.target]:
                raise InternalError(f"vertex {edge.target} is listed before its producer")
