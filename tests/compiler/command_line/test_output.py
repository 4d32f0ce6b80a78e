import io
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import answer, coloured, note, output_width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_files_and_pipes_get_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    answer("vertex 1  x2\n")
    note("mind the gap")
    out, err = capsys.readouterr()
    assert out == "vertex 1  x2\n"
    assert err == "opchain: note: mind the gap\n"
    assert output_width() == 100


def test_control_characters_are_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted, shown = "\x1b]0;title\x07\r\x9b1m\u202e\t", "\\x1b]0;title\\x07\\r\\x9b1m\\u202e\t"
    note(planted)
    CommandError(planted).show()
    assert capsys.readouterr().err == f"opchain: note: {shown}\nopchain: {shown}\n"
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    answer(f"vertex 1 {planted}\n")
    assert sys.stdout.getvalue() == f"\x1b[1mvertex 1 {shown}\x1b[0m\n"


def test_a_terminal_gets_colours_and_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.delenv("NO_COLOR", raising=False)
    answer("vertex 1  x2\n")
    assert terminal.getvalue() == "\x1b[1mvertex 1  x2\x1b[0m\n"
    assert output_width() == 72


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    answer("vertex 1  x2\n")
    assert terminal.getvalue() == "vertex 1  x2\n"


def test_colour_changes_only_escape_sequences() -> None:
    text = "job 'a', X: 1\n\nvertex 1  x2\n  │  ==> vertex 2  HASH\n  │      not chained: why\nadded   'b'\n"
    assert click.unstyle(coloured(text)) == text
    assert coloured(text).count("\x1b[0m") == 5


def test_an_encoding_without_box_drawing_characters_gets_ascii(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    answer("├─ naïve\n")
    sys.stdout.flush()
    assert raw.getvalue() == b"|- na\\xefve\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_to_a_full_device_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(
            CommandError, match="cannot write to standard output: No space left on device"
        ):
            answer("vertex 1  x2\n")
        with suppress(OSError):
            full.close()
