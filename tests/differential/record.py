"""Records PyFlink's results of every program of the suite. Run it with PyFlink's own Python:

    PATH=<pyflink environment>/bin:$PATH python tests/differential/record.py [--all]

Programs that are recorded already, and unchanged, are left out unless --all is given. Programs run together, 12
to a job. The traceback of a job that fails names the program that fails, else the job is halved. Programs that fail alone are
recorded as failing.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
import types
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from running import RECORDED, Case, all_cases, run_together

TOGETHER = 12
JOBS_OF_A_PROCESS = 5
"""PyFlink leaves hundreds of threads behind with each job: a new process goes on."""

ONE_PROCESS, MORE = "--one-process", 75
LONGEST_SECONDS = 60
BOOT = "pyflink.fn_execution.beam.beam_boot"


def quick_boot() -> None:
    """Runs PyFlink's beam_boot without apache_beam and pandas, which its parent packages import.

    PyFlink starts this module once per operator; it took 2.2 s of CPU time, and takes 0.3 s this way.
    """
    for package in ("apache_beam.portability.api", BOOT.rpartition(".")[0]):
        names = package.split(".")
        (path,) = importlib.util.find_spec(names[0]).submodule_search_locations  # type: ignore[union-attr,misc]
        for depth in range(len(names)):
            module = types.ModuleType(".".join(names[: depth + 1]))
            module.__path__ = [str(Path(path, *names[1 : depth + 1]))]
            sys.modules[module.__name__] = module
    runpy.run_module(BOOT, run_name="__main__", alter_sys=True)


def python_of_workers() -> str:
    """A file that is Python, except that it boots quickly."""
    path = Path(tempfile.mkdtemp(), "python")
    python = shlex.quote(sys.executable)
    path.write_text(
        f"""#!/bin/sh
[ "$1 $2" = "-m {BOOT}" ] && exec {python} {shlex.quote(__file__)} "$@"
exec {python} "$@"
"""
    )
    path.chmod(0o755)
    return str(path)


def environment() -> Any:
    from pyflink.common import Configuration  # noqa: PLC0415 - only where it is installed
    from pyflink.datastream import StreamExecutionEnvironment  # noqa: PLC0415

    configuration = Configuration()
    configuration.set_string("python.executable", PYTHON)
    configuration.set_string("restart-strategy.type", "none")
    configuration.set_string("taskmanager.memory.network.max", "512mb")
    configuration.set_string("taskmanager.memory.network.min", "512mb")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def execute(env: Any) -> None:
    """Runs a job, and cancels one that hangs.

    In batch mode PyFlink's operators with timers can deadlock: TimerRegistration waits for a bundle that waits for
    the list of timers.
    """
    client = env.execute_async()
    result = client.get_job_execution_result()
    end = time.monotonic() + LONGEST_SECONDS
    while not result.done():
        if time.monotonic() > end:
            client.cancel()
            raise TimeoutError("Error: the job hangs")
        time.sleep(0.2)
    result.result()


def record(cases: list[Case], known: dict[str, Any]) -> None:
    """Fills `known` with the records of some programs of one mode."""
    start = time.monotonic()
    print(f"{len(cases)} programs from {cases[0].name}", flush=True)
    try:
        found = run_together("pyflink", cases, environment, execute)
    except Exception as error:  # noqa: BLE001 - whatever it is, a program fails under PyFlink
        lines = "".join(traceback.format_exception(error)).splitlines()
        causes = [line for line in lines if "Error: " in line or line.startswith("Caused by: ")]
        reason = (causes or [repr(error)])[-1][:160]
        print(f"{len(cases)} programs fail: {reason}", flush=True)
        if len(cases) == 1:
            known[cases[0].name] = {"digest": cases[0].digest, "failed": reason}
            return
        # The traceback names the program whose function failed.
        failed = [case for case in cases if any(f"<{case.name}>" in line for line in lines)]
        first = failed if 0 < len(failed) < len(cases) else cases[: len(cases) // 2]
        record([case for case in cases if case not in first], known)
        record(first, known)
        return
    for case in cases:
        known[case.name] = {"digest": case.digest, "records": found[case.name]}
    print(f"{len(cases)} programs in {time.monotonic() - start:.0f} s", flush=True)


def trouble(case: Case) -> tuple[int, str]:
    """Sorts programs by how likely they take others down with them, and by mode.

    PyFlink gives some custom partitioners a wrong number of partitions, which fails the whole job.
    """
    uses_timers = re.search(r"\.window(_all)?\(|event_time_timer", case.text) is not None
    may_hang = case.mode == "BATCH" and uses_timers
    return may_hang + 2 * ("partition_custom" in case.text), case.mode


def main() -> None:
    known: dict[str, Any] = {}
    if RECORDED.exists():
        known = {line.pop("name"): line for line in read_lines()}
    cases = all_cases()
    wanted = [case for case in cases if known.get(case.name, {}).get("digest") != case.digest]
    wanted.sort(key=trouble)
    jobs = [
        alike[start : start + together]
        for (risk, _), alike in (
            (kind, list(found)) for kind, found in groupby(wanted, key=trouble)
        )
        for together in [2 if risk else TOGETHER]
        for start in range(0, len(alike), together)
    ]
    for job in jobs[:JOBS_OF_A_PROCESS]:
        record(job, known)
        write({case.name: known[case.name] for case in cases if case.name in known})
    sys.exit(MORE if len(jobs) > JOBS_OF_A_PROCESS else 0)


def read_lines() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(known: dict[str, Any]) -> None:
    lines = [json.dumps({"name": name, **what}, ensure_ascii=False) for name, what in known.items()]
    whole = "\n".join(lines) + "\n"
    RECORDED.write_bytes(gzip.compress(whole.encode(), 9, mtime=0))


if __name__ == "__main__":
    if BOOT in sys.argv:
        del sys.argv[1:3]
        quick_boot()
    else:
        PYTHON = python_of_workers()
        os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        if ONE_PROCESS in sys.argv:
            main()
        if "--all" in sys.argv:
            RECORDED.unlink(missing_ok=True)
        command = [sys.executable, *sys.argv, ONE_PROCESS]
        while (code := subprocess.run(command, check=False).returncode) == MORE:
            pass
        sys.exit(code)
