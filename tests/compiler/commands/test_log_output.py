from __future__ import annotations

import logging
import os
import sys
from typing import Any

import pytest

from opchain.compiler.commands.run import between_words, logging_to_stderr


@pytest.mark.parametrize(
    ("verbosity", "expected"),
    [(0, []), (1, ["information"]), (2, ["information", "detail"]), (9, ["information", "detail"])],
)
def test_each_verbose_flag_lowers_the_log_level(
    capsys: Any, verbosity: int, expected: list[str]
) -> None:
    log = logging.getLogger("opchain.job")
    with logging_to_stderr(verbosity):
        log.info("information")
        log.debug("detail")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" opchain.job: ")[2] for line in lines] == expected


def test_lines_are_logged_once_if_the_program_configures_logging(
    capsys: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with logging_to_stderr(1):
        logging.getLogger("opchain.job").info("once")
    assert capsys.readouterr().err.count("once") == 1
    assert caplog.text == ""


def test_logging_to_stderr_restores_the_logger() -> None:
    logger = logging.getLogger("opchain")
    before = logger.level, logger.propagate, list(logger.handlers)
    with logging_to_stderr(2):
        assert logger.level == logging.DEBUG
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_long_lines_break_between_words() -> None:
    path = f"/{'x' * 50}"
    text = between_words(f"'map' (job.py:3) dropped 5 records of {path}\nas late", 30)
    assert text == f"'map' (job.py:3) dropped 5\n  records of\n  {path}\nas late"


def test_warnings_appear_on_a_terminal_that_does_not_tell_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, programs = os.openpty()  # a new terminal is 0 columns wide
    with os.fdopen(ours, "rb", 0) as reader, os.fdopen(programs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with logging_to_stderr(1):
            logging.getLogger("opchain.job").warning("dropped 5 records")
        terminal.flush()
        assert reader.read(1000).endswith(b"dropped 5 records\r\n")
