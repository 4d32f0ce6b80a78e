"""The pytest plugin with the option `--update-golden`.

pytest loads it in every project of an environment that has opchain installed. So it imports nothing before the option
is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("opchain").addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files that differ instead of failing (assert_plan_matches)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Switches the run to writing, if asked."""
    if config.getoption("--update-golden"):
        from opchain.compiler.assertions.chaining import RUN  # noqa: PLC0415 - only if asked

        RUN.is_updating = True


def pytest_unconfigure(config: pytest.Config) -> None:
    """Switches back: a run inside a run (pytester) must not leave its choice behind."""
    if config.getoption("--update-golden"):
        from opchain.compiler.assertions.chaining import RUN  # noqa: PLC0415 - only if asked

        RUN.is_updating = False
        RUN.written.clear()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Lists the golden files that were written, so that no update is overlooked."""
    if not config.getoption("--update-golden"):
        return
    from opchain.compiler.assertions.chaining import RUN  # noqa: PLC0415 - only if asked

    terminalreporter.section("golden files")
    for path in RUN.written:
        terminalreporter.line(f"written: {path}")
    terminalreporter.line(f"{len(RUN.written)} written")
