"""Names that a user gave, where only a line of plain text can stand: in source, file names, and Spark's UI."""

from __future__ import annotations


def legible(text: str, longest: int = 80) -> str:
    r"""The name as one line of what can be printed and encoded.

    >>> legible("parse\nevil = 1")
    'parse evil = 1'
    """
    line = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= longest else line[: longest - 3] + "..."
