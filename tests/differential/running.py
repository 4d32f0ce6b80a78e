"""Runs programs of the differential suite, under PyFlink or under opchain, and notes their records.

Imported by record.py under PyFlink's own Python, so it needs nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import linecache
import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.jsonl.gz"

NOTING = r'''
class Noting(MapFunction):
    """Appends what it gets to a file."""

    def __init__(self, path, name):
        self.path = path
        self.name = name

    def open(self, runtime_context):
        self.file = open(self.path, "a", encoding="utf-8")

    def map(self, value):
        self.file.write(repr((self.name, repr(value))) + "\n")
        self.file.flush()
        return ""

    def close(self):
        self.file.close()
'''


class Case(NamedTuple):
    """One program and how it is run."""

    name: str
    mode: str
    parallelism: int
    text: str

    @property
    def digest(self) -> str:
        """Changes with the program, so that a stale expectation is found."""
        whole = f"{self.mode} {self.parallelism} {self.text}"
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


def all_cases() -> list[Case]:
    """The random programs and the whole ones."""
    programs = import_module("programs_of_the_suite")
    cases = []
    for seed in range(programs.RANDOM_PROGRAMS):
        program = programs.random_program(seed)
        cases.append(Case(program.name, program.mode, program.parallelism, program.text()))
    further = import_module("further_programs")
    for seed in range(further.FIRST, further.FIRST + further.COUNT):
        program = further.further_program(seed)
        cases.append(Case(program.name, program.mode, program.parallelism, program.text()))
    for path in sorted((HERE / "whole").glob("*.py")):
        text = path.read_text()
        modes = re.search(r"# mode: (.*)", text)
        found = re.search(r"# parallelism: (\d)", text)
        first, *others = modes[1].split(" and ") if modes else ["STREAMING"]
        case = Case(f"whole-{path.stem}", first, int(found[1]) if found else 1, text)
        cases.append(case)
        cases += [case._replace(name=f"{case.name}-{mode.lower()}", mode=mode) for mode in others]
    return cases


def draw(package: str, env: Any, case: Case, path: Path) -> None:
    """Adds a program to an environment; its records go to a file."""
    rename: Callable[[str], str] = lambda text: re.sub(r"\bpyflink\b", package, text)  # noqa: E731
    program = rename(case.text)
    # opchain inlines functions whose source it finds there.
    linecache.cache[f"<{case.name}>"] = (len(program), None, program.splitlines(keepends=True), "")
    # Under the name of the main module everything is pickled by value.
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, f"<{case.name}>", "exec"), names)  # noqa: S102
    noting: dict[str, Any] = {"__name__": "__main__"}
    exec(rename("from pyflink.datastream import MapFunction\n" + NOTING), noting)  # noqa: S102
    types = import_module(f"{package}.common").Types

    def out(stream: Any, name: str) -> None:
        noted = stream.rebalance().map(noting["Noting"](str(path), name), types.STRING())
        noted.set_parallelism(1)

    env.set_parallelism(case.parallelism)
    names["build"](env, out)


def run_together(
    package: str,
    cases: Sequence[Case],
    environment: Callable[[], Any],
    execute: Callable[[Any], object] = lambda env: env.execute(),
) -> dict[str, list[str]]:
    """The sorted records of each program, all of which run as one job.

    Args:
        package: "pyflink" or "opchain".
        cases: Programs of one mode.
        environment: Makes a fresh environment.
        execute: Runs the job of an environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = environment()
        modes = import_module(f"{package}.datastream").RuntimeExecutionMode
        env.set_runtime_mode(modes[cases[0].mode])
        for case in cases:
            draw(package, env, case, Path(folder, case.name))
        execute(env)
        found = {}
        for case in cases:
            path = Path(folder, case.name)
            found[case.name] = sorted(path.read_text("utf-8").splitlines()) if path.exists() else []
        return found
