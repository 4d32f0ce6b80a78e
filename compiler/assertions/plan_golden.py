"""A plan compared with a golden file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opchain.compiler.assertions.golden_files import assert_matches_golden
from opchain.compiler.assertions.planned import program_of
from opchain.compiler.plan.explain import Form, explain

if TYPE_CHECKING:
    import os

    from opchain.compiler.dsl.interception import Environment
    from opchain.compiler.graph.plan import Program

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
