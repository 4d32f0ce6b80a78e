"""Lines of text in aligned columns, for terminals and golden files.

This module is independent of plans. Widths are columns of a terminal; a CJK character takes two.
"""

from __future__ import annotations

import textwrap
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT_WIDTH = 100
"""The width without a terminal, so files, pipes and golden files are the same everywhere."""

_NARROWEST = 40
_LONGEST_CELL = 48
_GAP = "  "
_CONTROLS = {
    code: chr(code).encode("unicode_escape").decode()
    # C0 and C1, and those that reverse the direction of a text
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\n\t"
}
_ASCII = str.maketrans({"├": "|", "└": "`", "┌": ",", "─": "-", "│": "|", "…": "."})


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of a table. The rows of a text share the widths of all columns but the last."""

    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that is wrapped at the width. All lines start with `indent`, the first one also has `mark`."""

    indent: str
    mark: str
    text: str


Line = Row | Paragraph | str


def set_lines(lines: Sequence[Line], width: int = DEFAULT_WIDTH) -> str:
    """Formats the lines as text that ends with a line break.

    Rows are aligned with each other and never wrapped. A paragraph is wrapped between words.
    """
    widths = _column_widths([line for line in lines if isinstance(line, Row)])
    out: list[str] = []
    for line in lines:
        if isinstance(line, Row):
            out.append(_aligned(line, widths))
        elif isinstance(line, Paragraph):
            out += _broken(line, max(width, _NARROWEST))
        else:
            out.append(line)
    return "\n".join(out) + "\n"


def as_ascii(text: str) -> str:
    """Replaces box drawing characters by ASCII, for outputs that cannot show them. Names do not change."""
    return text.translate(_ASCII)


def without_controls(text: str) -> str:
    r"""Escapes control characters except line breaks and tabs, so that no text of others controls the terminal.

    >>> without_controls("a\x1b[31m\tb\n")
    'a\\x1b[31m\tb\n'
    """
    return text.translate(_CONTROLS)


def display_width(text: str) -> int:
    """The number of terminal columns of a text.

    >>> display_width("word"), display_width("単語"), display_width("é")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def one_line(text: str, limit: int = _LONGEST_CELL) -> str:
    r"""A user's text as a cell: control characters are escaped, and the text is cut at `limit` columns.

    >>> one_line("two\nlines"), one_line("a" * 50, limit=5)
    ('two\\nlines', 'aa...')
    """
    printable = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    if display_width(printable) <= limit:
        return printable
    while display_width(printable) > limit - 3:
        printable = printable[:-1]
    return f"{printable}..."


def listed(things: Iterable[str]) -> str:
    """Joins items with commas."""
    return ", ".join(things)


def counted(number: int, thing: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "vertex", "vertices"), counted(2, "operator")
    ('1 vertex', '2 operators')
    """
    return f"{number} {thing if number == 1 else plural or thing + 's'}"


def _column_widths(rows: Sequence[Row]) -> list[int]:
    columns = max((len(row.cells) for row in rows), default=0)
    return [
        max(display_width(row.cells[column]) for row in rows if column < len(row.cells))
        for column in range(columns)
    ]


def _aligned(row: Row, widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (width - display_width(cell))
        for cell, width in zip(row.cells, widths)  # noqa: B905 - a row may have fewer cells
    ]
    return _GAP.join(padded).rstrip()


def _broken(paragraph: Paragraph, width: int) -> list[str]:
    # Below a deep tree there is no room right of the indent. Then lines exceed the width, instead of getting too
    # narrow.
    room = max(width, len(paragraph.indent) + len(paragraph.mark) + _NARROWEST)
    return textwrap.wrap(
        paragraph.text,
        room,
        initial_indent=paragraph.indent + paragraph.mark,
        subsequent_indent=paragraph.indent + " " * len(paragraph.mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
