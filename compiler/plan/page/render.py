"""The page itself: static parts, the plan and its numbers as JSON, in one ASCII text."""

from __future__ import annotations

import base64
import html
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.page.contents import page_contents, vertex_details
from opchain.compiler.plan.page.numbers import no_numbers_yet, page_numbers
from opchain.compiler.plan.text import plan_text
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.plan import Plan, Program
    from opchain.compiler.plan.model import JobPlan
    from opchain.compiler.plan.page.contents import VertexDetails
    from opchain.runtime.metrics.job_metrics import JobMetrics

SCRIPTS = (
    "elements.js",
    "units.js",
    "boxes.js",
    "layout.js",
    "wires.js",
    "viewport.js",
    "overview.js",
    "source_code.js",
    "details.js",
    "search.js",
    "keys.js",
    "printing.js",
    "live.js",
    "page.js",
)
"""In the order in which they stand on the page; a script uses those before it."""

# Control characters, and halves of surrogate pairs: a browser would drop or misread them.
_NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


def program_page(program: Program, metrics: JobMetrics | None = None) -> str:
    """The page of a program, with its generated code; see `plan_page`.

    Raises:
        GraphError: The program is refused.
    """
    return compiled_page(compile_program(program), metrics)


def compiled_page(plan: Plan, metrics: JobMetrics | None = None) -> str:
    """The page of a program that is compiled to its end; see `plan_page`."""
    return plan_page(job_plan(plan), vertex_details(plan), metrics)


def live_page(plan: Plan, news: str) -> str:
    """The page of a job that runs, for whoever serves it: it asks for numbers, and loads nothing else.

    Args:
        plan: Compiled to its end.
        news: The address below the page's own from which server-sent events come: see static/live.js.
    """
    return plan_page(job_plan(plan), vertex_details(plan), news=news)


def plan_page(
    plan: JobPlan,
    details: Sequence[VertexDetails] = (),
    metrics: JobMetrics | None = None,
    news: str | None = None,
) -> str:
    """The page as HTML, in ASCII whatever the names hold; same plan and numbers, same bytes.

    Args:
        plan: What is drawn.
        details: One entry a vertex, or none for a saved plan, which holds neither stages nor source.
        metrics: What the job has counted, if it is over.
        news: From where more comes, if it is served; see `live_page`.
    """
    numbers = None if metrics is None or not metrics.vertices else page_numbers(metrics)
    if news is not None and numbers is None:
        numbers = no_numbers_yet(plan)
    parts = {
        "news": "" if news is None else f' data-news="{_in_html(news)}"',
        "connect": "" if news is None else "; connect-src 'self'",
        "title": _in_html(f"{plan.job_name} - plan"),
        "style": _static("page.css"),
        "text": _in_html(plan_text(plan)),
        "contents": _in_script(page_contents(plan, details)),
        "numbers": _in_script(numbers),
        "layout_library": _layout_library(),
        "script": "\n".join(map(_static, SCRIPTS)),
    }
    # One pass: a name that looks like a place is not filled again.
    return _PLACE.sub(lambda place: parts[place[1]], _static("page.html"))


def _static(name: str) -> str:
    return _bytes(name).decode("ascii")


def _layout_library() -> str:
    # Kept compressed, and as one file: what compresses it here might give other bytes elsewhere.
    return base64.b64encode(_bytes("elk/elk.bundled.js.gz")).decode("ascii")


def _bytes(name: str) -> bytes:
    file = resources.files(__package__).joinpath("static", *name.split("/"))
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise StreamError(
            f"there is no plan page here: this copy of opchain was packed without {name}, as the zip "
            "for executors is; make the page where opchain is installed"
        ) from None


def _in_html(text: str) -> str:
    r"""A user's text as ASCII that shows it.

    >>> _in_html('<b> "é"')
    '&lt;b&gt; &quot;&#233;&quot;'
    """
    shown = _NOT_IN_HTML.sub("\N{REPLACEMENT CHARACTER}", text)
    return html.escape(shown).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _in_script(value: Any) -> str:
    r"""JSON that stays inside its script element whatever it holds: `</script>`, `<!--`.

    >>> _in_script("</script>")
    '"\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
