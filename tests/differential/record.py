"""Records what PyFlink gives for every program of the suite. Run it with PyFlink's own Python:

    PATH=<pyflink environment>/bin:$PATH python tests/differential/record.py [--all]

Programs that are recorded already, and unchanged, are left out unless --all is given. Programs run together, 12
to a job. A job that fails is halved until the programs that fail are found; they are recorded as failing.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from running import RECORDED, Case, all_cases, run_together

TOGETHER = 12


def environment() -> Any:
    from pyflink.common import Configuration  # noqa: PLC0415 - only where it is installed
    from pyflink.datastream import StreamExecutionEnvironment  # noqa: PLC0415

    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "none")
    configuration.set_string("taskmanager.memory.network.max", "512mb")
    configuration.set_string("taskmanager.memory.network.min", "512mb")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def record(cases: list[Case], known: dict[str, Any]) -> None:
    """Fills `known` with the records of some programs of one mode."""
    start = time.monotonic()
    print(f"{len(cases)} programs from {cases[0].name}", flush=True)
    try:
        found = run_together("pyflink", cases, environment)
    except Exception as error:  # noqa: BLE001 - whatever it is, the program fails under PyFlink
        if len(cases) == 1:
            (case,) = cases
            last = [line for line in str(error).splitlines() if "Error" in line]
            known[case.name] = {"digest": case.digest, "failed": (last or [repr(error)])[-1][-160:]}
            print(f"{case.name} fails: {known[case.name]['failed']}", flush=True)
            return
        half = len(cases) // 2
        record(cases[:half], known)
        record(cases[half:], known)
        return
    for case in cases:
        known[case.name] = {"digest": case.digest, "records": found[case.name]}
    print(f"{len(cases)} programs in {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    os.nice(15)  # PyFlink starts many threads per program, which would starve other work
    known: dict[str, Any] = {}
    if RECORDED.exists() and "--all" not in sys.argv:
        known = {line.pop("name"): line for line in read_lines()}
    cases = all_cases()
    wanted = [case for case in cases if known.get(case.name, {}).get("digest") != case.digest]
    wanted.sort(key=lambda case: not case.name.startswith("whole"))
    for mode in ("BATCH", "STREAMING"):
        of_mode = [case for case in wanted if case.mode == mode]
        for start in range(0, len(of_mode), TOGETHER):
            record(of_mode[start : start + TOGETHER], known)
            write({case.name: known[case.name] for case in cases if case.name in known})


def read_lines() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(known: dict[str, Any]) -> None:
    lines = [json.dumps({"name": name, **what}, ensure_ascii=False) for name, what in known.items()]
    whole = "\n".join(lines) + "\n"
    RECORDED.write_bytes(gzip.compress(whole.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
