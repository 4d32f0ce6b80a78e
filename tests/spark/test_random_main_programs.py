"""Random functions of a main program give the same records on Spark as in process.

Functions of a main program are pickled by value, so everything that they use must be available on an executor.
`OPCHAIN_PROGRAMS` sets the number of programs, `OPCHAIN_SEED` the first seed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from own_process import run_program
from random_functions import random_program, with_prints

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full

PROGRAMS = int(os.environ.get("OPCHAIN_PROGRAMS", "4"))
SEED = int(os.environ.get("OPCHAIN_SEED", "1"))
MODES = ("STREAMING", "BATCH")

MAIN = """
from opchain.common import Configuration
from opchain.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

for target in ("local", "spark"):
    print("=== runs on", target, flush=True)
    configuration = Configuration().set_string("execution.target", target)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.MODE)
    draw(env)
    try:
        env.execute()
    except Exception as error:
        print("failed:", type(error).__name__, flush=True)
"""


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_random_main_programs_give_the_same_records_on_spark(seed: int, tmp_path: Path) -> None:
    text, _ = random_program(seed)
    main = MAIN.replace("MODE", MODES[seed % len(MODES)])
    file = tmp_path / "program.py"
    file.write_text(with_prints(text) + main, "utf-8")
    done = run_program(str(file))
    _, in_process, on_spark = (
        sorted(part.splitlines()[1:]) for part in f"\n{done.out}".split("=== runs on")
    )
    assert done.exit_code == 0, done.err
    has_failed = any(line.startswith("failed:") for line in in_process)
    if has_failed:  # prints the earlier results
        in_process, on_spark = (
            [line for line in lines if line.startswith("failed:")]
            for lines in (in_process, on_spark)
        )
    assert on_spark == in_process
    assert on_spark or has_failed
