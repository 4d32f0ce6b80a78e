"""W5: ten operators in one chain, and with a shuffle between each two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import chunks, parts
from benchmarks.environment import PARALLELISM
from benchmarks.measure import Baseline, Workload
from benchmarks.tally import Tally, added, tallied, tally_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain import StreamExecutionEnvironment


def workloads(session: Any, scale: float) -> list[Workload]:
    """1,000,000 numbers."""
    count = int(1_000_000 * scale)
    context = session.sparkContext

    def by_hand() -> tuple[int, ...]:
        digests = parts(context, lambda part: (_loop(chunk) for chunk in chunks(count, part)))
        return added(digests.collect())

    def idiomatic() -> tuple[int, ...]:
        numbers = context.range(0, count, numSlices=PARALLELISM)
        kept = numbers.map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
        pairs = kept.map(lambda x: (x % 1000, x)).filter(lambda pair: pair[0] != 13)
        sums = pairs.map(lambda pair: pair[0] + pair[1]).flatMap(lambda x: (x, -x))
        last = sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)
        return added(last.mapPartitions(lambda part: [tallied(part)]).collect())

    return [
        Workload(
            "W5 ten operators",
            count,
            lambda: _run(count, is_chained=True),
            (
                Baseline("(a) by hand", by_hand),
                Baseline("(b) idiomatic RDD", idiomatic, 1.5),
                Baseline("(c) plain loop", lambda: _loop(range(count))),
                Baseline("ours, not chained", lambda: _run(count, is_chained=False), 5.0),
            ),
        )
    ]


def _run(count: int, *, is_chained: bool) -> tuple[int, ...]:
    def drawn(env: StreamExecutionEnvironment, folder: str) -> None:
        if not is_chained:
            env.disable_operator_chaining()
        draw(env, count, folder)

    return tally_by("W5", drawn)


def draw(env: StreamExecutionEnvironment, count: int, folder: str) -> None:
    """The program."""
    numbers = env.from_sequence(0, count - 1)
    kept = numbers.map(lambda x: x + 7).map(lambda x: x * 3).filter(lambda x: x % 5 != 0)
    pairs = kept.map(lambda x: (x % 1000, x)).filter(lambda pair: pair[0] != 13)
    sums = pairs.map(lambda pair: pair[0] + pair[1]).flat_map(lambda x: (x, -x))
    last = sums.map(lambda x: x // 2).filter(lambda x: x % 3 != 0).map(lambda x: x ^ 255)
    last.flat_map(Tally(folder)).print()


def _loop(numbers: Iterable[int]) -> tuple[int, int]:
    count = check = 0
    for x in numbers:
        tripled = (x + 7) * 3
        if tripled % 5 == 0:
            continue
        key = tripled % 1000
        if key == 13:
            continue
        total = key + tripled
        for signed in (total, -total):
            half = signed // 2
            if half % 3 != 0:
                count += 1
                check += half ^ 255
    return count, check
