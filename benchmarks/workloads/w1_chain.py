"""W1: numbers -> map -> filter -> flat_map -> count. One chain, no exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import chunks, parts
from benchmarks.environment import PARALLELISM, environment
from benchmarks.measure import Baseline, Workload
from benchmarks.sinks import DigestSink, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain import StreamExecutionEnvironment


def workloads(session: Any, scale: float) -> list[Workload]:
    """3,000,000 numbers."""
    count = int(3_000_000 * scale)
    context = session.sparkContext

    def ours() -> int:
        env = environment()
        draw(env, count)
        env.execute("W1")
        return digest_of("W1")[0]

    def by_hand() -> int:
        return sum(
            parts(context, lambda part: (_loop(chunk) for chunk in chunks(count, part))).collect()
        )

    def idiomatic() -> int:
        numbers = context.range(0, count, numSlices=PARALLELISM)
        found = numbers.map(lambda x: x * 3).filter(lambda x: x % 2 == 0)
        return int(found.flatMap(lambda x: (x, x + 1)).count())

    return [
        Workload(
            "W1 chain",
            count,
            ours,
            (
                Baseline("(a) by hand", by_hand, 1.0),
                Baseline("(b) idiomatic RDD", idiomatic, 1.5),
                Baseline("(c) plain loop", lambda: _loop(range(count))),
            ),
        )
    ]


def draw(env: StreamExecutionEnvironment, count: int) -> None:
    """The program."""
    found = env.from_sequence(0, count - 1).map(lambda x: x * 3).filter(lambda x: x % 2 == 0)
    found.flat_map(lambda x: (x, x + 1)).sink_to(DigestSink("W1", lambda batch: (len(batch),)))


def _loop(numbers: Iterable[int]) -> int:
    count = 0
    for x in numbers:
        tripled = x * 3
        if tripled % 2 == 0:
            for _ in (tripled, tripled + 1):
                count += 1
    return count
