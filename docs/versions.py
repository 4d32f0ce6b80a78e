"""Runs a selection of the tests on each Python and pyspark, and writes docs/reference/versions.md.

    python docs/versions.py                     every Python that is found, with every pyspark that it can have
    python docs/versions.py --python 3.12 --pyspark 4.2 --tests tests/runtime/state

Each combination gets a separate virtual environment below --folder, which later runs use again. The page names the
selected tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/versions.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PYSPARKS = ("4.0", "4.1", "4.2", "4.3")
NEEDS_3_11 = {"4.3"}
"""The versions of pyspark whose metadata require Python 3.11."""
TESTS = ("tests/runtime/state/keys", "tests/compiler/passes", "tests/spark/test_exchange.py")
HEAD = """# Versions

opchain needs Python 3.10 to 3.13, and pyspark 4.0 to 4.3 with Java 17 or 21. pyspark 4.3 needs Python 3.11 or later; with
Python 3.10, pip installs an earlier pyspark. On Python 3.10, CSV text with a NUL character is malformed, because Python's `csv`
module refuses it.

`python docs/versions.py` runs a selection of the tests for each combination, and writes this table. `.ci/run` runs all tests for one
combination. A combination with an empty cell or without a row was not run, such as any with Python 3.14. The number of tests
differs between cells, because tests were added between the runs.

"""


def find_python(version: str) -> str | None:
    """An interpreter of a minor version: on the path, or below ~/.pyenv."""
    known = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(known[-1]) if known else shutil.which(f"python{version}")


def run_tests(python: str, pyspark: str, folder: Path, tests: list[str]) -> str:
    """The cell of a combination: the number of tests that passed, or why it failed."""
    venv = folder / f"{Path(python).parent.parent.name}-{pyspark}"
    own = venv / "bin/python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
    installed = subprocess.run(
        [str(own), "-m", "pip", "install", "-q", f"{ROOT}[test]", f"pyspark=={pyspark}.*"],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        return f"not installable: {last_line(installed.stderr)}"
    done = subprocess.run(
        [str(own), "-m", "pytest", "-q", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-2000:])
    return result_of(done.stdout)


def result_of(output: str) -> str:
    """What pytest's last line says, without its duration."""
    return re.sub(r" in [\d.]+s.*$", "", last_line(output)).strip("= ")


def last_line(text: str) -> str:
    """The last line that is not empty."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def read_cells(page: str) -> dict[tuple[str, str], str]:
    """The cells of an earlier table, so that a run of some combinations keeps the others."""
    cells = {}
    for line in page.splitlines():
        columns = [column.strip() for column in line.strip("|").split("|")]
        if columns[0] in PYTHONS:
            for pyspark, cell in zip(PYSPARKS, columns[1:]):  # noqa: B905 - a row is as the table's head
                cells[columns[0], pyspark] = cell
    return {place: cell for place, cell in cells.items() if cell}


def table(cells: dict[tuple[str, str], str], tests: list[str]) -> str:
    """The page."""
    lines = [
        "| Python | " + " | ".join(f"pyspark {pyspark}" for pyspark in PYSPARKS) + " |",
        "|---" * (len(PYSPARKS) + 1) + "|",
    ]
    for python in PYTHONS:
        row = [cells.get((python, pyspark), "") for pyspark in PYSPARKS]
        if any(row):
            lines.append(f"| {python} | " + " | ".join(row) + " |")
    selection = ", ".join(f"`{test}`" for test in tests)
    return f"{HEAD}The selection: {selection}.\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=PYTHONS)
    parser.add_argument("--pyspark", action="append", choices=PYSPARKS)
    parser.add_argument("--tests", nargs="+", default=list(TESTS))
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "opchain-venvs"
    )
    arguments = parser.parse_args()
    cells = read_cells(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    failed = False
    for version in arguments.python or PYTHONS:
        python = find_python(version)
        for pyspark in arguments.pyspark or PYSPARKS:
            if python is None:
                continue
            if pyspark in NEEDS_3_11 and version == "3.10":
                cells[version, pyspark] = "needs Python 3.11"
                continue
            cells[version, pyspark] = run_tests(python, pyspark, arguments.folder, arguments.tests)
            failed |= "passed" not in cells[version, pyspark] or "failed" in cells[version, pyspark]
            print(f"Python {version}, pyspark {pyspark}: {cells[version, pyspark]}", flush=True)
            PAGE.write_text(table(cells, arguments.tests), encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
