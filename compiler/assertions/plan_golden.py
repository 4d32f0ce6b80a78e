"""Golden files of plans: stored, compared, and rewritten by `pytest --update-golden`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.compiler.assertions.chaining import program_of
from opchain.compiler.plan.explain import Form, explain

if TYPE_CHECKING:
    import os

    from opchain.compiler.graph.plan import Program
    from opchain.compiler.interception import Environment


@dataclass(slots=True)
class GoldenRun:
    """What this run does with golden files: compare them, or write those that differ."""

    is_updating: bool = False
    written: list[Path] = field(default_factory=list)


RUN = GoldenRun()


def assert_matches_golden(actual: str, path: Path) -> None:
    """Compares text with a golden file; under `--update-golden` writes the file instead.

    The file is UTF-8 with Unix line ends on every system, so that goldens are the same everywhere.

    Raises:
        AssertionError: If the file is missing or differs; the message has the difference.
    """
    __tracebackhide__ = True
    expected = path.read_text(encoding="utf-8") if path.exists() else None
    if expected == actual:
        return
    if RUN.is_updating:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8", newline="\n")
        RUN.written.append(path)
        return
    if expected is None:
        raise AssertionError(
            f"the golden file {path} does not exist; run pytest --update-golden to write it. "
            f"It would hold:\n\n{actual}"
        )
    difference = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"{path} (golden)", "now", lineterm=""
    )
    lines = "\n".join(difference) or "only the newline at the end differs"
    raise AssertionError(
        f"the golden file {path} differs from what the program gives now; if the change is "
        f"intended, run pytest --update-golden and review the file.\n\n{lines}\n\nnow:\n{actual}"
    )


_TEXT = Form(call_sites=False)


def assert_plan_matches(
    program: Environment | Program,
    golden: str | os.PathLike[str],
    *,
    stage: str = "job-graph",
) -> None:
    """Asserts that the text of a plan is what a golden file holds; `pytest --update-golden` writes it.

    The text names no lines of the program, so that only changes of the plan change the file.

    Args:
        program: An environment or a program.
        golden: The file; a relative path starts at the working directory.
        stage: `stream-graph`, `job-graph`, `execution` or `generated`.

    Raises:
        AssertionError: The file is missing or differs.
        GraphError: The program is refused.
    """
    __tracebackhide__ = True
    assert_matches_golden(explain(program_of(program), stage, text=_TEXT), Path(golden))
