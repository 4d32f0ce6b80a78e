"""StreamGraph and chained edges -> operator ids, as Flink's `StreamGraphHasherV2` makes them.

The state of an operator is stored under its id, so ids must equal Flink's bit for bit. The id depends on the operator's
uid. Without a uid it depends on the number of operators that were hashed before, on the number of operators chained
after it, and on the ids of its inputs. Names and parallelism do not matter.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import mmh3

from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode


def assign_operator_ids(plan: Plan) -> Plan:
    """Sets `operator_ids`: 32 hexadecimal digits by stream node.

    Raises:
        JobGraphError: Two operators have the same uid.
    """
    graph = required(plan.stream_graph)
    hashes = _breadth_first(graph, required(plan.chained_edges))
    return replace(plan, operator_ids={node: digest.hex() for node, digest in hashes.items()})


def every_operator_has_its_own_id(plan: Plan) -> None:
    """The invariant: ids are unique. State and vertex ids depend on it."""
    graph, ids = required(plan.stream_graph), required(plan.operator_ids)
    missing = [node.label for node in graph.nodes() if node.id not in ids]
    if missing:
        raise InternalError(f"no operator id for {missing[0]}")
    if len(set(ids.values())) != len(ids):
        raise InternalError("two operators have the same operator id")


def hash_of_uid(uid: str) -> bytes:
    """The operator id for a uid."""
    return mmh3.hash_bytes(uid.encode("utf-8", "surrogatepass"), 0, x64arch=True)


def _breadth_first(graph: StreamGraph, chained_edges: frozenset[int]) -> dict[int, bytes]:
    """Hashes a node after its inputs. A node with a uid does not depend on its inputs.

    A node that is visited before all of its inputs are hashed is visited again from another input.
    """
    hashes: dict[int, bytes] = {}
    owners: dict[bytes, StreamNode] = {}
    queue = deque(graph.sources())
    seen = {node.id for node in queue}
    while queue:
        node = queue.popleft()
        if node.uid is not None:
            digest = hash_of_uid(node.uid)
            _refuse_duplicate(node, owners.get(digest))
        elif all(edge.source in hashes for edge in graph.in_edges(node.id)):
            digest = _hash_of_position(graph, node, hashes, chained_edges)
        else:
            seen.remove(node.id)
            continue
        hashes[node.id] = digest
        owners[digest] = node
        for edge in graph.out_edges(node.id):
            if edge.target not in seen:
                seen.add(edge.target)
                queue.append(graph.node(edge.target))
    return hashes


def _hash_of_position(
    graph: StreamGraph, node: StreamNode, hashes: dict[int, bytes], chained_edges: frozenset[int]
) -> bytes:
    # A chained source's edge into an operator with several inputs is not counted: Flink calls isChainable here, which
    # requires a single in-edge.
    chained = sum(
        edge.index in chained_edges and len(graph.in_edges(edge.target)) == 1
        for edge in graph.out_edges(node.id)
    )
    number = len(hashes).to_bytes(4, "little")
    digest = mmh3.hash_bytes(number * (1 + chained), 0, x64arch=True)
    for edge in graph.in_edges(node.id):
        other = hashes[edge.source]
        digest = bytes((mine * 37 & 0xFF) ^ its for mine, its in zip(digest, other, strict=True))
    return digest


def _refuse_duplicate(node: StreamNode, owner: StreamNode | None) -> None:
    if owner is not None:
        raise JobGraphError(
            f"{node.label} has the uid {node.uid!r} of {owner.label}; a uid identifies an "
            f"operator's state; give each operator a different uid"
        )
