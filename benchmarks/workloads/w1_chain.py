"""W1: numbers -> map -> filter -> flat_map -> tally. One chain, no exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import chunks, parts
from benchmarks.environment import PARALLELISM
from benchmarks.measure import Baseline, Workload
from benchmarks.tally import Tally, added, tallied, tally_by
from opchain.common import Types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain import StreamExecutionEnvironment


def workloads(session: Any, scale: float) -> list[Workload]:
    """3,000,000 numbers."""
    count = int(3_000_000 * scale)
    context = session.sparkContext

    def by_hand() -> tuple[int, ...]:
        sent = parts(context, lambda part: (_loop(chunk) for chunk in chunks(count, part)))
        return added(sent.collect())

    def idiomatic() -> tuple[int, ...]:
        numbers = context.range(0, count, numSlices=PARALLELISM)
        found = numbers.map(lambda x: x * 3).filter(lambda x: x % 2 == 0)
        both = found.flatMap(lambda x: (x, x + 1))
        return added(both.mapPartitions(lambda part: [tallied(part)]).collect())

    return [
        Workload(
            "W1 chain",
            count,
            lambda: tally_by("W1", lambda env, folder: draw(env, count, folder)),
            (
                Baseline("(a) by hand", by_hand, 1.0),
                Baseline("(b) idiomatic RDD", idiomatic, 1.5),
                Baseline("(c) plain loop", lambda: _loop(range(count))),
            ),
        )
    ]


def draw(env: StreamExecutionEnvironment, count: int, folder: str) -> None:
    """The program."""
    tripled = env.from_sequence(0, count - 1).map(lambda x: x * 3, output_type=Types.LONG())
    even = tripled.filter(lambda x: x % 2 == 0)
    even.flat_map(lambda x: (x, x + 1), output_type=Types.LONG()).flat_map(Tally(folder)).print()


def _loop(numbers: Iterable[int]) -> tuple[int, int]:
    count = total = 0
    for x in numbers:
        tripled = x * 3
        if tripled % 2 == 0:
            for both in (tripled, tripled + 1):
                count += 1
                total += both
    return count, total
