"""Measures the gain of each rewrite rule of the code generator: programs with all rules and without one of them.

    python -m benchmarks.rules [--records 40000] [--rounds 3] [RULE ...]

It runs the programs of `spellings`, `stateful`, `operators` and `as_written` whose code the rule changes, in both modes.
Prints for each rule the number of these programs, and the ratio of CPU time without the rule to CPU time with all rules:
the median and the three greatest. The rule gains if the ratio is above 1.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import as_written, operators, spellings, stateful
from benchmarks.environment import environment
from benchmarks.in_process import job_of, measured, run
from opchain.compiler.codegen.rules import RULE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain import DataStream, StreamExecutionEnvironment

    Draw = Callable[[StreamExecutionEnvironment], DataStream[Any]]


def programs(folder: str, records: int) -> Iterator[tuple[str, Draw, Any]]:
    """Each program's name, the function that draws it, and the field of its results to add up."""
    given = spellings.write_input(folder, records)
    for workload, spelled in spellings.SPELLINGS.items():
        for name, spelling in spelled.items():
            yield f"{workload} {name}", lambda env, s=spelling: s.draw(env, given), spelling.field
    clicks = stateful.write_input(folder, records)
    for name in stateful.PROGRAMS:
        yield f"stateful {name}", lambda env, name=name: stateful.drawn(env, name, clicks), 1
    paths = operators.write_input(folder, records)
    for name, (draw, _) in operators.PROGRAMS.items():
        yield f"operators {name}", lambda env, draw=draw: draw(env, paths, records), 1
    events = as_written.write_input(folder, records)
    for name, (draw, _) in as_written.PROGRAMS.items():
        yield f"as written {name}", lambda env, draw=draw: draw(env, events), None


def gains_of(
    draw: Draw, field: Any, mode: str, folder: str, rules: Sequence[str], rounds: int
) -> dict[str, float]:
    """The ratio of CPU time without a rule to CPU time with all rules, by each rule that changes a program's code."""

    def compiled(without: str) -> Any:
        env = environment(execution__runtime_mode=mode, opchain__codegen__without=without)
        return job_of(draw(env), folder, field)

    def code(job: Any) -> list[str]:
        return [vertex.source for vertex in job.vertices]

    whole = compiled("")
    jobs = {rule: compiled(rule) for rule in rules}
    jobs = {rule: job for rule, job in jobs.items() if code(job) != code(whole)}
    times: dict[str, list[float]] = {}
    for _ in range(rounds if jobs else 0):
        for rule, job in {"": whole, **jobs}.items():
            times.setdefault(rule, []).append(measured(partial(run, job, folder))[0])
    return {rule: min(times[rule]) / min(times[""]) for rule in jobs}


def main() -> None:
    """Measures the rules and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="*", default=list(RULE_NAMES))
    parser.add_argument("--records", type=int, default=40_000, help="a multiple of 4")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    gains: dict[str, list[tuple[float, str]]] = {rule: [] for rule in given.rules}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as results:
        for name, draw, field in programs(folder, given.records):
            for mode in ("STREAMING", "BATCH"):
                found = gains_of(draw, field, mode, results, given.rules, given.rounds)
                for rule, gain in found.items():
                    gains[rule].append((gain, f"{name}, {mode}"))
    for rule, measurements in gains.items():
        if not measurements:
            print(f"{rule:24} changes no program")
            continue
        greatest = sorted(measurements, reverse=True)[:3]
        median = statistics.median(gain for gain, _ in measurements)
        print(
            f"{rule:24} {len(measurements):3} programs, median {median:.2f}, greatest",
            "; ".join(f"{gain:.2f} {name}" for gain, name in greatest),
        )


if __name__ == "__main__":
    main()
