"""A plan in a notebook cell: a small SVG with a box for each vertex, and a link to the page.

A server in this process creates a page when its link is opened. So a cell takes some kilobytes, instead of the 0.7 MB
of a page. The server only accepts connections from this machine, and only addresses with its token.
"""

from __future__ import annotations

import html
import secrets
import threading
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opchain.compiler.plan.layout import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.plan.model import JobPlan, PlannedVertex

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
