"""A statement with `?` in the places of a record's fields, as JDBC has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'                  # text with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$           # text between dollars
    | --[^\n]*
    | /\*.*?\*/
    | \?\?                                      # the operator ?, as PostgreSQL's driver writes it
    | (?P<parameter>\?)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """The text between the parameters: one piece more than there are parameters."""

    pieces: tuple[str, ...]

    @property
    def parameter_count(self) -> int:
        """How many `?` there are."""
        return len(self.pieces) - 1

    def with_parameters(self, parameters: Sequence[str]) -> str:
        """The text with something else in the place of each `?`."""
        found = [self.pieces[0]]
        for parameter, piece in zip(parameters, self.pieces[1:], strict=True):
            found += [parameter, piece]
        return "".join(found)


def parse_statement(sql: str) -> Statement:
    """Finds the parameters; `??` is an operator, and what stands in quotes or comments is none.

    Raises:
        ValueError: There are none, or several statements.
    """
    text = sql.strip().rstrip(";").rstrip()
    pieces: list[str] = []
    current: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        current.append(text[end : token.start()])
        end = token.end()
        if token["parameter"]:
            pieces.append("".join(current))
            current = []
        elif token.group() == "??":
            current.append("?")
        elif not token.group().startswith(("--", "/*")):
            current.append(token.group())
        else:
            current.append(" ")
    pieces.append("".join((*current, text[end:])))
    if len(pieces) == 1:
        raise ValueError(
            f"the statement {sql!r} of a JdbcSink has no parameter; write ? for each field of the records"
        )
    return Statement(tuple(pieces))
