"""Compares opchain with hand-written PySpark, idiomatic RDD code, plain Python, and transformWithState.

    python benchmarks/run.py [--quick] [--only W1,W4] [--rounds 7] [--json FILE] [--memory]

All contenders run in turn in one session on two cores, and their results must be equal. A ratio is opchain's
throughput divided by the baseline's: above 1 opchain is faster. The session starts before the measurement, and the
first round of each workload only warms up. The time of a job includes everything from drawing to the end of the last
task. transformWithState runs in one round, and needs the extra `benchmark`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # Python workers import the workloads, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.path[0] = str(ROOT)

from benchmarks.environment import spark_session
from benchmarks.measure import Comparison, compare
from benchmarks.memory import measure_memory
from benchmarks.tables import Progress, show_comparisons, show_machine, show_memory

WORKLOADS = {
    "W1": "w1_chain",
    "W2": "w2_keyed_sum",
    "W3": "w3_bid_windows",
    "W4": "w4_word_count",
    "W5": "w5_ten_operators",
    "W6": "w6_three_stages",
    "Nexmark": "nexmark",
}
"""Modules in benchmarks.workloads by name. Their function `workloads(session, scale)` returns the workloads."""

ROUNDS = 5
QUICK_SCALE, QUICK_ROUNDS = 0.1, 3


def main(arguments: list[str] | None = None) -> int:
    """Runs the workloads that the command line selects. The exit code is 0 even if a target is missed."""
    options = _parser().parse_args(arguments)
    scale = options.scale or (QUICK_SCALE if options.quick else 1.0)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    show_machine()
    comparisons: list[Comparison] = []
    with Progress() as progress:
        session = spark_session()
        for name in options.only:
            module = importlib.import_module(f"benchmarks.workloads.{WORKLOADS[name]}")
            for workload in module.workloads(session, scale):
                comparisons += compare(workload, rounds, progress.tell)
        session.stop()
    show_comparisons(comparisons)
    if options.json is not None:
        options.json.write_text(json.dumps([_entry(item) for item in comparisons], indent=2) + "\n")
    if options.memory:
        for uses in measure_memory():
            show_memory(uses)
    return 0


def _entry(comparison: Comparison) -> dict[str, object]:
    entry = asdict(comparison)
    del entry["target"]
    return entry


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", type=_names, default=list(WORKLOADS), metavar="W1,W4")
    parser.add_argument("--rounds", type=int, help=f"measured rounds (default: {ROUNDS})")
    parser.add_argument("--scale", type=float, help="share of the records (default: 1)")
    parser.add_argument(
        "--quick", action="store_true", help=f"--scale {QUICK_SCALE} --rounds {QUICK_ROUNDS}"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the table to this file as JSON"
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="also measure the memory of a worker, W4 at 100 MB and 1 GB",
    )
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in WORKLOADS:
            raise argparse.ArgumentTypeError(
                f"there is no workload '{name}'; there are {', '.join(WORKLOADS)}"
            )
    return names


if __name__ == "__main__":
    sys.exit(main())
