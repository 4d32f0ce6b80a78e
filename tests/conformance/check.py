"""Compiles pipelines that Flink compiled, and compares the results.

    python tests/conformance/check.py FILE [--show N]

FILE holds job graphs (`.jsonl`, one vector a line) or key groups (`.json`), plain or gzipped. Each
pipeline is built through the public DSL. Prints the first differences, and at the end
`equal: N of M`; the exit code is 0 when all are equal.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import key_groups
from compiled_form import compiled_form
from differences import differences
from pipelines import UnknownPartError, build

from opchain.compiler.passes.pipeline import compile_program
from opchain.runtime.errors import GraphError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Vector = dict[str, Any]

_ALL_SHOWN = 20
_SHOWN_OF_ONE = 5
_LONGEST_LINE = 300


def vectors(path: Path) -> Iterator[Vector]:
    """The job graph vectors of a file."""
    for line in _text(path).splitlines():
        if line.strip():
            yield json.loads(line)


def check_vector(vector: Vector) -> list[str]:
    """The differences of one vector; empty if all is equal. Never raises an error."""
    try:
        return list(_check(vector["spec"], vector["expected"]))
    except UnknownPartError as unknown:
        return [f"this check does not know {unknown}"]
    except Exception:  # noqa: BLE001 - whatever breaks is a difference of this vector, not the end
        return [f"crashed: {traceback.format_exc(limit=-3)}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks a file and prints the result; 0 when all is equal, 1 when not, 2 without a file."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--show", type=int, default=_ALL_SHOWN, help="how many differences to print"
    )
    options = parser.parse_args(arguments)
    if not options.file.is_file():
        print(f"there is no file {options.file}", file=sys.stderr)
        return 2
    if ".jsonl" in options.file.suffixes:
        equal, total, lines = _check_job_graphs(options.file)
    else:
        equal, total, lines = key_groups.check(json.loads(_text(options.file)))
    for line in lines[: options.show]:
        print(line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}...")
    print(f"equal: {equal} of {total}")
    return 0 if equal == total > 0 else 1


def _check_job_graphs(path: Path) -> tuple[int, int, list[str]]:
    equal, total, lines = 0, 0, []
    for vector in vectors(path):
        total += 1
        found = check_vector(vector)
        equal += not found
        name = vector.get("spec", {}).get("name", f"vector {total}")
        lines += [f"{name}: {line}" for line in found[:_SHOWN_OF_ONE]]
    return equal, total, lines


def _check(spec: Vector, expected: Vector) -> Iterator[str]:
    try:
        env, spec_nodes = build(spec)
        plan = compile_program(env.program(), until="job-graph")
    except (StreamError, TypeError, ValueError) as refusal:
        # Wrong arguments of a DSL call are TypeError and ValueError, as everywhere in Python.
        phase = refusal.phase if isinstance(refusal, GraphError) else "build"
        yield from _compare_refusals(expected.get("error"), phase, refusal)
        return
    if expected.get("error"):
        yield f"expected a refusal in phase {expected['error']['phase']}, but it compiles"
        return
    found = compiled_form(plan, spec["name"], spec_nodes, with_plan="plan" in expected)
    yield from differences(expected, found)


def _compare_refusals(expected: Vector | None, phase: str, refusal: Exception) -> Iterator[str]:
    if expected is None:
        yield f"refused in phase {phase}, but Flink compiles it: {refusal!r}"
    elif expected["phase"] != phase:
        yield f"refused in phase {phase}, but Flink does so in {expected['phase']}: {refusal!r}"


def _text(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
