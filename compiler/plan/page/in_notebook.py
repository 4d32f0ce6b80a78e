"""A plan that a notebook shows as its page, and everything else as its text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program
    from opchain.runtime.metrics.job_metrics import JobMetrics

HEIGHT_PX = 640
"""Of the frame in a notebook, which is as wide as its cell."""


class ShownText(str):
    """A stage of a program in print: a string, which a notebook sets as it is meant to be read."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # what travels to an executor is text, and needs no compiler


class ShownPlan(ShownText):
    """The text of a plan; a notebook shows its page, which can be clicked, searched and printed."""

    # No slots: a subclass of str can have none.
    _program: Program
    _metrics: JobMetrics | None

    @classmethod
    def of(cls, text: str, program: Program, metrics: JobMetrics | None = None) -> ShownPlan:
        """The plan of a program, which is compiled to its end when the page is asked for."""
        shown = cls(text)
        shown._program, shown._metrics = program, metrics
        return shown

    def with_numbers(self, metrics: JobMetrics) -> ShownPlan:
        """The same plan, its page with what the job has counted.

        Args:
            metrics: `metrics` of the JobExecutionResult of this very program.
        """
        return self.of(str(self), self._program, metrics)

    def page(self) -> str:
        """The page as HTML, for a file of its own."""
        from opchain.compiler.plan.page.render import program_page  # noqa: PLC0415 - text needs none

        return program_page(self._program, self._metrics)

    def _repr_html_(self) -> str:
        return framed(self.page())


def shown(text: str, stage: str, program: Program) -> ShownText:
    """What `explain` hands out: the text of a stage, and for the job graph its page behind it."""
    return ShownPlan.of(text, program) if stage == "job-graph" else ShownText(text)


def framed(page: str) -> str:
    """A page inside another one, with scripts and styles of its own and no access to the other's."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-modals allow-downloads" '
        f'style="width: 100%; height: {HEIGHT_PX}px; border: 0"></iframe>'
    )
