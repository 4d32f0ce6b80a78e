"""Nexmark: queries of examples/nexmark, which read events from a file and write files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import nexmark_by_hand, stateful_processors
from benchmarks.environment import environment
from benchmarks.json_lines import Written, empty_folder
from benchmarks.measure import Baseline, Workload
from benchmarks.nexmark_events import nexmark_events
from benchmarks.transform_with_state import stateful_baseline
from examples.nexmark.job import draw

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = {
    "q0": "pass through",
    "q1": "currency",
    "q2": "selection",
    "q5": "hot items",
    "q7": "highest bid",
    "q8": "new users",
}


def workloads(session: Any, scale: float) -> list[Workload]:
    """1,000,000 events in 100 seconds. transformWithState takes minutes, so it runs at full scale only."""
    count = int(1_000_000 * scale)
    path = nexmark_events(count)
    return [_workload(session, path, count, query, is_full=scale >= 1) for query in QUERIES]


def _workload(session: Any, path: Path, count: int, query: str, *, is_full: bool) -> Workload:
    def ours() -> Written:
        folder = empty_folder(f"{query}-ours")
        env = environment()
        draw(env, query, str(path), str(folder))
        env.execute(query)
        return Written(folder)

    def by_hand() -> Written:
        folder = empty_folder(f"{query}-by-hand")
        getattr(nexmark_by_hand, query)(session.sparkContext, path, folder)
        return Written(folder)

    with_state = getattr(stateful_processors, query, None) if is_full else None
    return Workload(
        f"Nexmark {query} {QUERIES[query]}",
        count,
        ours,
        (
            Baseline("(a) by hand", by_hand),
            *(stateful_baseline(session, [path], query, with_state) if with_state else ()),
        ),
    )
