"""The syntax of windows in Flink's SQL, which sqlglot lacks: `TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' MINUTE)`."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import imported

WINDOWS: dict[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""The names of windows, and their intervals in order."""


class WindowParser:
    """Methods for a parser of sqlglot. The call of a window becomes an Anonymous, a table in it a TableArgument."""

    table_argument: Any

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def window(self, name: str) -> Any:
        """The call of a window, after its opening parenthesis."""
        expressions = imported("sqlglot.expressions", "sql", "SQL")
        arguments = self._parse_csv(self._window_argument)
        return expressions.Anonymous(this=name, expressions=arguments)

    def _window_argument(self) -> Any:
        """An expression, `NAME => an argument`, or `TABLE t PARTITION BY a`."""
        expressions = imported("sqlglot.expressions", "sql", "SQL")
        token = imported("sqlglot.tokens", "sql", "SQL").TokenType
        if self._next and self._next.token_type == token.FARROW:
            name = expressions.var(self._advance_any().text)
            self._advance()
            return expressions.Kwarg(this=name, expression=self._window_argument())
        if not self._match(token.TABLE):
            return self._parse_assignment()
        table = self.table_argument(this=self._parse_table_parts())
        if self._match(token.PARTITION_BY):
            keys = self._parse_assignment()
            table.set("partition", keys.expressions or [keys.unnest()])
        return table


PARSERS = {name: methodcaller("window", name) for name in WINDOWS}
"""What the parser calls for a window."""


def text_of_table(generator: Any, tree: Any) -> str:
    """The text of a TableArgument."""
    keys = ", ".join(map(generator.sql, tree.args.get("partition") or ()))
    return f"TABLE {generator.sql(tree.this)}{f' PARTITION BY ({keys})' if keys else ''}"
