"""Pages behind links, for the cells of a notebook.

A server in this process makes a page when somebody follows its link. So a cell with a plan takes some kilobytes, and not
the 0.7 MB of its page. The server answers this machine only, and only addresses that hold its token.
"""

from __future__ import annotations

import secrets
import threading
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """An address where a page can be read while this process lives.

    Args:
        make: Makes the page when it is asked for.
    """
    return _server().add(make)
