"""A headless Chromium, and pages opened in it that must stay silent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

Open = Callable[..., Any]

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE_MS = 120_000
"""How long a page may take for what it is waited for, on a slow machine with much else to do."""

WINDOW = {"width": 1440, "height": 860}

HELD_LAYOUT = """
const text = Response.prototype.text;
Response.prototype.text = async function () {
  await new Promise((resolve) => { window.releaseLayout = resolve; });
  return text.call(this);
};
"""
"""Keeps the page from its layout until the test calls `releaseLayout()`."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    # Not for the whole run: while Playwright is started, its event loop is the thread's.
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install '.[browser]'"
    )
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if is_root else []
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens HTML as a file. The test fails if the page reports an error, loads anything, or opens a dialog.

    With `is_held=True` the page is not drawn yet, and is when its `releaseLayout()` is called.
    """
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_html(html: str, *, is_held: bool = False, **settings: Any) -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="ascii")
        context = chromium.new_context(**({"viewport": WINDOW} | settings))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None if request.url == file.as_uri() else complaints.append(f"loads {request.url}")
            ),
        )
        if is_held:
            page.add_init_script(HELD_LAYOUT)
        page.goto(file.as_uri())
        if is_held:
            page.wait_for_function("() => window.releaseLayout")
        elif settings.get("java_script_enabled", True) and "<iframe" not in html:
            page.wait_for_selector(".drawn", state="attached")
        return page

    yield open_html
    for context in contexts:
        context.close()
    assert complaints == []
