"""SQL statements with `?` for the fields of a record, as in JDBC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import SinkError, short_repr
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

_POSTGRES_TOKEN = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'                  # text with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | `[^`]*`
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$           # text between dollars
    | --[^\n]*
    | /\*.*?\*/
    | \?\?                                      # the operator ?, as PostgreSQL's driver writes it
    | (?P<parameter>\?)
    """,
    re.VERBOSE | re.DOTALL,
)

_MYSQL_TOKEN = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*'                      # a backslash escapes a quote
    | "(?:[^"\\]|\\.|"")*"
    | `[^`]*`
    | --(?=\s|$)[^\n]*                          # without a space these are two minus signs
    | \#[^\n]*
    | /\*.*?\*/
    | (?P<parameter>\?)
    """,
    re.VERBOSE | re.DOTALL,
)


_WORD = re.compile(r"[A-Za-z_]\w*")
_WRITING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "CALL"})
_KINDS = _WRITING | {"SELECT", "VALUES", "TABLE"}
"""The kind of a statement is the first of these words outside of parentheses, after WITH."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The pieces of text between the parameters: one more than there are parameters."""

    pieces: tuple[str, ...]

    @property
    def is_call(self) -> bool:
        """Whether the statement calls a procedure."""
        return self.pieces[0].lstrip()[:4].upper() == "CALL"

    @property
    def parameter_count(self) -> int:
        """The number of parameters."""
        return len(self.pieces) - 1

    def corrects(self, other: Statement) -> bool:
        """Whether this is another statement for the same records."""
        return self != other and self.parameter_count == other.parameter_count

    def require_fields(self, record: Any, where: str) -> None:
        """Checks that a record has a field for each parameter. `where` is the sink, for errors.

        Raises:
            SinkError: It has another number of fields, or is not a record with fields.
        """
        count = self.parameter_count
        if not isinstance(record, (Row, tuple, list)) or len(record) != count:
            raise SinkError(
                f"{where} got the record {short_repr(record)}; its statement takes a Row, tuple or list of {count} fields"
            )

    def with_parameters(self, parameters: Sequence[str]) -> str:
        """The text with each `?` replaced."""
        found = [self.pieces[0]]
        for parameter, piece in zip(parameters, self.pieces[1:], strict=True):
            found += [parameter, piece]
        return "".join(found)


def parse_statement(sql: str, *, is_mysql: bool = False) -> Statement:
    """Finds the parameters. A `?` in quotes or comments is not a parameter. In PostgreSQL, `??` is an operator.

    Args:
        sql: The statement.
        is_mysql: Whether quotes and comments are those of MySQL. Otherwise they are those of PostgreSQL.

    Raises:
        ValueError: There are no parameters, there are several statements, or a sink cannot run the statement.
    """
    text = sql.strip().rstrip(";").rstrip()
    pieces: list[str] = []
    current: list[str] = []
    bare: list[str] = []
    end = 0
    for token in (_MYSQL_TOKEN if is_mysql else _POSTGRES_TOKEN).finditer(text):
        current.append(text[end : token.start()])
        bare += text[end : token.start()], " "
        end = token.end()
        if token["parameter"]:
            pieces.append("".join(current))
            current = []
        elif token.group() == "??":
            current.append("?")
        elif not token.group().startswith(("--", "/*", "#")):
            current.append(token.group())
        else:
            current.append(" ")
    pieces.append("".join((*current, text[end:])))
    _require_writing("".join((*bare, text[end:])), sql)
    if len(pieces) == 1:
        raise ValueError(
            f"the statement {sql!r} of a JdbcSink has no parameter; write ? for each field of the records"
        )
    return Statement(tuple(pieces))


def _require_writing(bare: str, sql: str) -> None:
    """Checks that a statement writes and returns no rows, by its text without quotes and comments.

    Raises:
        ValueError: The check fails.
    """
    if ";" in bare:
        raise ValueError(
            f"the statement {sql!r} of a JdbcSink holds several statements, but a sink runs one "
            f"statement per record: use WITH ... AS (...) to combine several changes"
        )
    words = [word.upper() for word in _WORD.findall(_without_parentheses(bare))]
    kind = next((word for word in words if word in _KINDS), None)
    if kind not in _WRITING or (words[0] != "WITH" and words[0] != kind):
        raise ValueError(
            f"the statement {sql!r} of a JdbcSink begins with "
            f"{words[0] if words else 'nothing'!r}, but a sink runs only "
            f"{', '.join(sorted(_WRITING))}, or WITH ... and one of them"
        )
    if "RETURNING" in words:
        raise ValueError(
            f"the statement {sql!r} of a JdbcSink has RETURNING, but its result is never read: "
            f"remove RETURNING"
        )


def _without_parentheses(text: str) -> str:
    """The text outside of all parentheses."""
    depth, found = 0, []
    for character in text:
        depth -= character == ")"
        if depth <= 0:
            found.append(" " if character in "()" else character)
        depth += character == "("
    return "".join(found)
