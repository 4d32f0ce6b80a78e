"""Runs random programs under PyFlink and under opchain, and prints those whose records differ.

    python tests/differential/compare_functions.py PYTHON_OF_PYFLINK [--seed 1] [--programs 20] [--mode BATCH]

The programs are those of tests/random_functions.py with one input, because PyFlink reads two inputs in any order.
It takes about 10 seconds for each. Some differences are known: docs/reference/pyflink.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from random_functions import OF_TIMERS, Writer, with_prints

LONGEST_SECONDS = 60
MAIN = """
from opchain.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.set_runtime_mode(RuntimeExecutionMode.{mode})
draw(env)
env.execute()
"""


class OneInput(Writer):
    """Leaves out what depends on the order of two inputs, or on when PyFlink emits watermarks."""

    READ_SIDE_OUTPUTS = 1.0  # without a reader, PyFlink puts the tags into the main output
    TIMERS = tuple(line for line in OF_TIMERS if "register" in line)
    STEPS: ClassVar = (
        *(Writer._mapped, Writer._filtered, Writer._flat_mapped, Writer._reduced),
        *(Writer._counted, Writer._tagged, Writer._processed, Writer._rolled, Writer._declared),
        Writer._awaited,
    )
    TIMED_STEPS: ClassVar = (Writer._windowed, Writer._windowed_together, Writer._processed)


def program(seed: int, mode: str) -> str:
    """The text of a program, for opchain."""
    text, _ = OneInput(seed).program()
    text = with_prints(text)
    text = text.replace("from_sequence(0, 39)", "from_collection(list(range(40)))")
    text = text.replace(" * 3 % 50", "").replace(".allowed_lateness(10)", "")  # nothing is late
    return text + MAIN.format(mode=mode)


def for_pyflink(text: str) -> str:
    """The same program, for PyFlink."""
    text = text.replace("import TimestampAssigner, ", "import ").replace(" TimestampAssigner,", "")
    more = "from pyflink.common.watermark_strategy import TimestampAssigner\nfrom pyflink.datastream import *\n"
    return more + re.sub(r"\bopchain\b", "pyflink", text)


def outcome(python: str, text: str) -> dict[str, list[str]] | str:
    """The records of each stream, or the last line of the error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(text, encoding="utf-8")
        here = str(Path(__file__).parents[2])
        environment = {
            **os.environ,
            "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": here if python == sys.executable else "",
        }
        try:
            done = subprocess.run(
                [python, str(path)],
                check=False,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    if done.returncode:
        found = re.findall(
            r"^(?:Caused by: )?(?:\w+\.)*\w+(?:Error|Exception)\b.*", done.stderr, re.MULTILINE
        )
        return found[-1] if found else done.stderr[-300:]
    records: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("@"):
            name, _, record = line.partition(" ")
            records.setdefault(name, []).append(record)
    return records


def main() -> None:
    """Compares the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--mode", choices=["STREAMING", "BATCH"], default="STREAMING")
    given = parser.parse_args()
    equal = failed = 0
    for seed in range(given.seed, given.seed + given.programs):
        text = program(seed, given.mode)
        theirs = outcome(given.python, for_pyflink(text))
        ours = outcome(sys.executable, text)
        if theirs == ours:
            equal += 1
        elif isinstance(theirs, str) and isinstance(ours, str):
            failed += 1
        else:
            print(f"{seed}: PyFlink {theirs}\n    opchain {ours}", flush=True)
    print(f"{equal} equal, {failed} fail under both, of {given.programs}")


if __name__ == "__main__":
    main()
