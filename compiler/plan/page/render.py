"""The plan page: static parts, and the plan and its numbers as JSON, in one ASCII text.

Notebooks show a plan as its page, everything else as text. A notebook cell has a small SVG with a box for each vertex,
and a link to the page. A server in this process creates a page when its link is opened. So a cell takes some kilobytes,
instead of the 0.7 MB of a page. The server only accepts connections from this machine, and only addresses with its
token.
"""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
import threading
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.graph.plan import Plan, Program, required
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import one_line
from opchain.compiler.plan.page.numbers import empty_numbers, page_numbers
from opchain.compiler.plan.text import generated_modules, plan_text, without_call_sites
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedVertex
    from opchain.runtime.measurements.job_metrics import JobMetrics


MOST_VERTICES = 60
"""Larger plans are not drawn in a cell."""

_WIDTH, _HEIGHT = 190, 46
_GAP_X, _GAP_Y, _MARGIN = 56, 16, 6
_LONGEST = 26
_COLOURS = {
    "source": "#2f7d4f",
    "sink": "#8a5a00",
    "join": "#a03070",
    "window": "#6a48b0",
    "state": "#1f63b5",
    "plain": "#808080",
}


def plan_picture(plan: JobPlan) -> str:
    """The picture; a sentence if the plan is too large. The same plan gives the same text."""
    if len(plan.vertices) > MOST_VERTICES:
        return f"<p>{len(plan.vertices)} vertices: too many to draw here</p>"
    places = _places(plan)
    width = 2 * _MARGIN + max((x for x, _ in places), default=0) + _WIDTH
    height = 2 * _MARGIN + max((y for _, y in places), default=0) + _HEIGHT
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="plan of {_text(plan.job_name)}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'style="max-width: 100%; height: auto; color: inherit; font: 11px sans-serif">'
    )
    number_of = plan.vertex_number_of
    wires = (
        _wire(
            places[number_of[edge.source] - 1],
            places[number_of[edge.target] - 1],
            edge.ship_strategy if edge.key is None else f"by {edge.key}",
        )
        for edge in plan.edges
        if not edge.is_chained
    )
    families = (_family_of(plan, each) for each in plan.vertices)
    return "".join((begin, *wires, *map(_box, plan.vertices, places, families), "</svg>"))


def _places(plan: JobPlan) -> list[tuple[int, int]]:
    """The upper left corner of each vertex."""
    inputs: dict[int, list[int]] = {number: [] for number in range(len(plan.vertices))}
    for edge in plan.edges:
        if not edge.is_chained:
            source, target = (
                plan.vertex_number_of[node] - 1 for node in (edge.source, edge.target)
            )
            inputs[target].append(source)
    columns: dict[int, int] = {}
    rows: dict[int, int] = {}
    heights: dict[int, int] = {}
    for number in range(len(plan.vertices)):  # in topological order
        before = inputs[number]
        column = 1 + max((columns[each] for each in before), default=-1)
        wanted = min((rows[each] for each in before), default=0)
        rows[number] = max(wanted, heights.get(column, 0))
        heights[column] = rows[number] + 1
        columns[number] = column
    return [
        (_MARGIN + columns[n] * (_WIDTH + _GAP_X), _MARGIN + rows[n] * (_HEIGHT + _GAP_Y))
        for n in range(len(plan.vertices))
    ]


def _family_of(plan: JobPlan, vertex: PlannedVertex) -> str:
    """The most important feature of a vertex."""
    found = {plan.operator_at[node].family for node in vertex.nodes}
    return next((family for family in _COLOURS if family in found), "plain")


def _box(vertex: PlannedVertex, place: tuple[int, int], family: str) -> str:
    x, y = place
    operators = len(vertex.nodes)
    size = f"\N{MULTIPLICATION SIGN}{vertex.parallelism}"
    if operators > 1:
        size += f" \N{MIDDLE DOT} {operators} operators"
    return (
        f'<g><title>{_text(vertex.name)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" '
        f'fill="{_COLOURS[family]}" fill-opacity=".12" stroke="{_COLOURS[family]}"/>'
        f'<text x="{x + 9}" y="{y + 19}" fill="currentColor">{_text(one_line(vertex.name, _LONGEST))}</text>'
        f'<text x="{x + 9}" y="{y + 35}" fill="currentColor" fill-opacity=".7">{size}</text></g>'
    )


def _wire(source: tuple[int, int], target: tuple[int, int], word: str) -> str:
    x1, y1 = source[0] + _WIDTH, source[1] + _HEIGHT // 2
    x2, y2 = target[0], target[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return (
        f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="currentColor" '
        f'stroke-opacity=".5"><title>{_text(word)}</title></path>'
        f'<path d="M{x2} {y2}l-6 -3v6z" fill="currentColor" fill-opacity=".6"/>'
    )


def _text(text: str) -> str:
    return html.escape("".join(char if char.isprintable() else " " for char in text))


_MOST_PAGES = 100


class _Pages(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.token = secrets.token_urlsafe(12)
        self._pages: dict[str, Callable[[], str]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def add(self, make: Callable[[], str]) -> str:
        """The address of one more page; the oldest goes if there are very many."""
        with self._lock:
            self._count += 1
            path = f"/{self.token}/{self._count}"
            self._pages[path] = make
            if len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        return f"http://127.0.0.1:{self.server_port}{path}"

    def page(self, path: str) -> Callable[[], str] | None:
        with self._lock:
            return self._pages.get(path)


class _Handler(BaseHTTPRequestHandler):
    server: _Pages

    def do_GET(self) -> None:
        make = self.server.page(self.path)
        if make is None or self.headers.get("Host", "").rpartition(":")[0] != "127.0.0.1":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        data = make().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
        """Nothing: the cell's output is the program's."""


@cache
def _server() -> _Pages:
    server = _Pages()
    threading.Thread(target=server.serve_forever, name="plan pages", daemon=True).start()
    return server


def link_to(make: Callable[[], str]) -> str:
    """An address where a page can be read while this process runs.

    Args:
        make: Creates the page when the link is opened.
    """
    return _server().add(make)


class VertexDetails(NamedTuple):
    """Information about a vertex that only a completely compiled program has: its Spark stage and its source."""

    stage: int
    code: str


def vertex_details(plan: Plan) -> tuple[VertexDetails, ...]:
    """The details of each vertex, in the order of the job graph's vertices."""
    placed = required(plan.execution_plan).placed()
    stages = [placed[vertex.id].stage for vertex in required(plan.job_graph).vertices]
    return tuple(map(VertexDetails, stages, generated_modules(plan)))


def page_contents(plan: JobPlan, details: Sequence[VertexDetails] = ()) -> dict[str, Any]:
    """Vertices and exchanges in the order of the plan.

    `details` has one entry per vertex. It is empty for a saved plan, which contains neither stages nor source.
    """
    return {
        "job": plan.job_name,
        "mode": plan.mode,
        "vertices": [
            _vertex(plan, vertex, number, details[number - 1] if details else None)
            for number, vertex in enumerate(plan.vertices, start=1)
        ],
        "exchanges": [_exchange(plan, edge) for edge in plan.edges if not edge.is_chained],
    }


def _vertex(
    plan: JobPlan, vertex: PlannedVertex, number: int, details: VertexDetails | None
) -> dict[str, Any]:
    has_keys = any(plan.operator_at[node].keys for node in vertex.nodes)
    return {
        "number": number,
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": _set(vertex.parallelism),
        "maxParallelism": _set(vertex.max_parallelism),
        "keyGroups": _set(vertex.effective_max_parallelism) if has_keys else None,
        "slotSharingGroup": vertex.slot_sharing_group,
        "stage": None if details is None else details.stage,
        "code": None if details is None else details.code,
        "operators": list(_operators(plan, vertex)),
    }


def _operators(plan: JobPlan, vertex: PlannedVertex) -> Iterator[dict[str, Any]]:
    """The tree of operators from its head down, after the sources that run inside the head.

    `depth` is the number of forks above an operator. As in the text form, a chain is not indented.
    """
    for node in vertex.chained_sources:
        yield _operator(plan, node, "source", 0)
    # A stack instead of recursion: a chain may be longer than Python's recursion limit.
    stack = [(vertex.operators[0], "head", 0)]
    while stack:
        node, role, depth = stack.pop()
        yield _operator(plan, node, role, depth)
        chained = [edge.target for edge in plan.out_edges[node] if edge.is_chained]
        if len(chained) > 1:
            stack += [(child, "branch", depth + 1) for child in reversed(chained)]
        else:
            stack += [(child, "next", depth) for child in chained]


def _operator(plan: JobPlan, node: int, role: str, depth: int) -> dict[str, Any]:
    operator = plan.operator_at[node]
    reads = [edge.tag for edge in plan.in_edges[node] if edge.is_chained and edge.tag is not None]
    return {
        "node": node,
        "id": operator.id,
        "name": operator.name,
        "kind": operator.word,
        "family": operator.family,
        "parent": next((edge.source for edge in plan.in_edges[node] if edge.is_chained), None),
        "callSite": operator.call_site,
        "uid": operator.uid,
        "uidHash": operator.user_id,
        "state": operator.state,
        "keys": list(operator.keys),
        "description": None if operator.description == operator.name else operator.description,
        "sideOutputs": reads,
        "role": role,
        "depth": depth,
    }


def _exchange(plan: JobPlan, edge: PlannedEdge) -> dict[str, Any]:
    return {
        "source": plan.vertex_number_of[edge.source],
        "target": plan.vertex_number_of[edge.target],
        "from": edge.source,
        "to": edge.target,
        "input": edge.input,
        "strategy": edge.ship_strategy,
        "key": edge.key,
        "sideOutput": edge.tag,
        "pattern": edge.pattern,
        "resultType": edge.result_type,
        "reasons": [
            {
                "code": rule.code,
                "brief": without_call_sites(rule.reason, plan.call_sites),
                "reason": rule.reason,
                "advice": rule.advice,
            }
            for rule in edge.not_chained_because
        ],
    }


def _set(number: int) -> int | None:
    return None if number == UNSET else number


SCRIPTS = (
    "elements.js",
    "units.js",
    "glyphs.js",
    "boxes.js",
    "layout.js",
    "wires.js",
    "viewport.js",
    "overview.js",
    "source_code.js",
    "details.js",
    "lineage.js",
    "search.js",
    "keys.js",
    "printing.js",
    "strip.js",
    "live.js",
    "page.js",
)
"""The scripts in their order on the page. A script uses earlier scripts."""

# Control characters and unpaired surrogates, which a browser would drop or misread.
_NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


def program_page(program: Program, metrics: JobMetrics | None = None) -> str:
    """The page of a program, with its generated code; see `plan_page`.

    Raises:
        GraphError: The program is refused.
    """
    return compiled_page(compile_program(program), metrics)


def compiled_page(plan: Plan, metrics: JobMetrics | None = None) -> str:
    """The page of a completely compiled program; see `plan_page`."""
    return plan_page(job_plan(plan), vertex_details(plan), metrics)


def live_page(plan: Plan, updates: str, run: Mapping[str, Any] | None = None) -> str:
    """The page of a running job, for a server. It requests updates, and loads nothing else.

    Args:
        plan: The completely compiled plan.
        updates: The address of server-sent events, relative to the page: see static/live.js.
        run: Values that do not change while the job runs: its settings.
    """
    return plan_page(job_plan(plan), vertex_details(plan), updates=updates, run=run)


def saved_page(plan: Plan, run: Mapping[str, Any]) -> str:
    """The page of a finished run, as one file.

    Args:
        plan: The completely compiled plan.
        run: The last update and all epochs: see compiler/monitoring/job_watch.py.
    """
    return plan_page(job_plan(plan), vertex_details(plan), run=run)


def plan_page(
    plan: JobPlan,
    details: Sequence[VertexDetails] = (),
    metrics: JobMetrics | None = None,
    updates: str | None = None,
    run: Mapping[str, Any] | None = None,
) -> str:
    """The page as HTML, in ASCII for any names. The same plan and numbers give the same bytes.

    Args:
        plan: The plan.
        details: One entry per vertex. Empty for a saved plan, which contains neither stages nor source.
        metrics: The metrics of a finished job.
        updates: The address of updates, if a server provides them; see `live_page`.
        run: Information about the run; see `live_page` and `saved_page`.
    """
    numbers = None if metrics is None or not metrics.vertices else page_numbers(metrics)
    if (updates is not None or run is not None) and numbers is None:
        numbers = empty_numbers(plan)
    parts = {
        "updates": "" if updates is None else f' data-updates="{_in_html(updates)}"',
        "connect": "" if updates is None else "; connect-src 'self'",
        "title": _in_html(f"{plan.job_name} - plan"),
        "style": _static("page.css"),
        "text": _in_html(plan_text(plan)),
        "contents": _in_script(page_contents(plan, details)),
        "numbers": _in_script(numbers),
        "run": _in_script(run),
        # Stored compressed, as one file: compressing it here could give other bytes on another machine.
        "layout_library": base64.b64encode(_bytes("elk/elk.bundled.js.gz")).decode("ascii"),
        "script": "\n".join(map(_static, SCRIPTS)),
    }
    # A single pass: a name that looks like a placeholder is not replaced again.
    return _PLACE.sub(lambda place: parts[place[1]], _static("page.html"))


def _static(name: str) -> str:
    return _bytes(name).decode("ascii")


def _bytes(name: str) -> bytes:
    file = resources.files(__package__).joinpath("static", *name.split("/"))
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise StreamError(
            f"cannot write a plan page: this copy of opchain lacks {name}; install opchain and "
            f"write the page there"
        ) from None


def _in_html(text: str) -> str:
    r"""A user's text as ASCII HTML.

    >>> _in_html('<b> "é"')
    '&lt;b&gt; &quot;&#233;&quot;'
    """
    shown = _NOT_IN_HTML.sub("\N{REPLACEMENT CHARACTER}", text)
    return html.escape(shown).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _in_script(value: Any) -> str:
    r"""JSON that cannot end its script element, even if it contains `</script>` or `<!--`.

    >>> _in_script("</script>")
    '"\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


HEIGHT_PX = 640
"""The height of the frame in a notebook. Its width is that of the cell."""


class ShownText(str):
    """The printed form of a stage: a string, which a notebook shows as preformatted text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # an executor gets plain text, which does not need the compiler


class ShownPlan(ShownText):
    """The text of a plan. A notebook shows its interactive page."""

    # No slots: a subclass of str cannot have them.
    _program: Program
    _metrics: JobMetrics | None

    @classmethod
    def of(cls, text: str, program: Program, metrics: JobMetrics | None = None) -> ShownPlan:
        """The plan of a program. It is completely compiled when the page is requested."""
        shown = cls(text)
        shown._program, shown._metrics = program, metrics
        return shown

    def with_numbers(self, metrics: JobMetrics) -> ShownPlan:
        """The same plan, whose page has the metrics of a job.

        Args:
            metrics: `metrics` of the JobExecutionResult of this program.
        """
        return self.of(str(self), self._program, metrics)

    def page(self) -> str:
        """The page as HTML, to write to a file."""
        return program_page(self._program, self._metrics)

    def frame(self) -> PageFrame:
        """The whole page (0.7 MB) in the cell of a notebook."""
        return PageFrame(self.page())

    def _repr_html_(self) -> str:
        """A small picture, and a link to the page."""
        return program_cell(self._program, self.page)


class PageFrame(NamedTuple):
    """A page that a notebook shows in a frame."""

    page: str

    def _repr_html_(self) -> str:
        return framed(self.page)


def shown(text: str, stage: str, program: Program) -> ShownText:
    """The result of `explain`: the text of a stage, and the page of the job graph."""
    return ShownPlan.of(text, program) if stage == "job-graph" else ShownText(text)


def program_cell(program: Program, page: Callable[[], str]) -> str:
    """A picture of a program and a link to its page, for the cell of a notebook.

    Raises:
        GraphError: The program is invalid.
    """
    picture = plan_picture(job_plan(compile_program(program, "job-graph")))
    return (
        f'{picture}<div style="font-size: 11px"><a href="{link_to(page)}" target="_blank">page of this plan</a> '
        "(while this kernel runs, on its machine); <code>.frame()</code> of <code>env.explain()</code> shows it here</div>"
    )


def environment_cell(program: Program) -> str:
    """The environment as HTML, for notebooks."""
    settings = program.settings
    title = (
        f"<div><b>StreamExecutionEnvironment</b> parallelism {settings.parallelism}, "
        f"target {settings.target}, {settings.runtime_mode.lower()}</div>"
    )
    if not program.transformations:
        return f"{title}<div>no operators yet</div>"
    return title + program_cell(program, lambda: program_page(program))


def framed(page: str) -> str:
    """A page in an iframe, with its own scripts and styles, and no access to the surrounding page."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-modals allow-downloads" '
        f'style="width: 100%; height: {HEIGHT_PX}px; border: 0"></iframe>'
    )
