"""Measures imports in a fresh interpreter: the fastest of several runs, in milliseconds.

python benchmarks/import_time.py
"""

from __future__ import annotations

import subprocess
import sys
import time

RUNS = 7
STATEMENTS = (
    "pass",
    "import opchain",
    "from opchain import StreamExecutionEnvironment",
    "from opchain.testing import assert_chained",
    "import opchain.compiler.cli",
)


def best_of(statement: str) -> float:
    """The fastest run: files are cached, and other processes disturbed it least."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Prints a line for each statement: its time, and the difference to an empty program."""
    empty = best_of(STATEMENTS[0])
    for statement in STATEMENTS:
        seconds = best_of(statement)
        print(f"{1_000 * seconds:7.0f} ms  {1_000 * (seconds - empty):+7.0f} ms  {statement}")


if __name__ == "__main__":
    main()
