"""Statements of Flink's SQL: sqlglot splits them into tokens and parses queries; DDL is read from the tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.expressions import parsed, sqlglot
from opchain.compiler.table.like import PARTS, STRATEGIES, Like, checked_strategy
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.table.data_types import DataType

_ONE_CATALOG = "all tables are in default_catalog.default_database; omit the statement"
_REFUSED = {
    "ALTER": "DROP the table and CREATE it again",
    "EXECUTE": "create_statement_set() runs several INSERT INTO as one job",
    "BEGIN": "create_statement_set() runs several INSERT INTO as one job",
    "LOAD": "there are no modules; omit the statement",
    "UPDATE": "a jdbc table with a PRIMARY KEY updates the rows that are inserted into it",
    "DELETE": "delete rows with a client of the database",
}
_NOT_CREATED = {
    "CATALOG": "describe each table with CREATE TABLE and a connector",
    "DATABASE": _ONE_CATALOG,
    "FUNCTION": "call create_temporary_function() with a udf(...) of Python",
}
_SHOWN = "TABLES", "VIEWS", "CATALOGS", "DATABASES", "CURRENT CATALOG", "CURRENT DATABASE"
_SHOWN_OF_ONE = "CREATE TABLE", "CREATE VIEW"
_DETAILS = "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"
_OPENING, _CLOSING = ("(", "["), (")", "]")
_GENERIC = ("ARRAY", "MAP", "ROW", "MULTISET", "STRUCT")


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE."""

    path: str
    descriptor: TableDescriptor
    if_not_exists: bool
    like: Like | None = None


@dataclass(frozen=True)
class CreateView:
    """CREATE VIEW."""

    path: str
    query: Any
    if_not_exists: bool
    columns: tuple[str, ...] = ()
    comment: str | None = None
    is_temporary: bool = False


@dataclass(frozen=True)
class Explain:
    """EXPLAIN, with the names of the details, such as JSON_EXECUTION_PLAN."""

    details: tuple[str, ...]
    statement: Any


@dataclass(frozen=True)
class Drop:
    """DROP TABLE or DROP VIEW."""

    path: str
    if_exists: bool


@dataclass(frozen=True)
class Insert:
    """INSERT INTO."""

    path: str
    columns: tuple[str, ...]
    query: Any
    partition: tuple[tuple[str, str], ...] = ()
    """The partition columns with one value for all rows, and the SQL text of each value."""


@dataclass(frozen=True)
class Select:
    """A query."""

    query: Any


@dataclass(frozen=True)
class Set:
    """SET 'key' = 'value'."""

    key: str
    value: str


@dataclass(frozen=True)
class Show:
    """SHOW TABLES and the like, or DESCRIBE.

    Attributes:
        what: TABLES, VIEWS, CATALOGS, DATABASES, CURRENT CATALOG, CURRENT DATABASE, CREATE TABLE, CREATE VIEW, or COLUMNS
            for DESCRIBE.
        path: The table of DESCRIBE, SHOW CREATE TABLE and SHOW CREATE VIEW.
    """

    what: str
    path: str = ""


@dataclass(frozen=True)
class Use:
    """USE CATALOG or USE: there is only one of each."""


def plain_path(path: str) -> str:
    """The name of a table, without the default catalog and database.

    >>> plain_path("default_catalog.default_database.orders")
    'orders'
    """
    return path.removeprefix("default_catalog.").removeprefix("default_database.")


def create_table_text(path: str, descriptor: TableDescriptor) -> str:
    """The CREATE TABLE statement of a table, as Flink writes it."""
    schema = descriptor.schema
    assert schema is not None
    types, computed = dict(schema.columns), dict(schema.computed)
    metadata = {each.name: each for each in schema.metadata}
    lines = []
    for name in schema.order or types:
        if name in computed:
            lines.append(f"`{name}` AS {_quoted(computed[name])}")
            continue
        found = metadata.get(name)
        line = f"`{name}` {_whole_type(types[name] if found is None else found.data_type)}"
        if found is not None:
            line += f" METADATA FROM '{found.key}'{' VIRTUAL' if found.is_virtual else ''}"
        lines.append(line)
    if schema.time is not None:
        lines.append(f"WATERMARK FOR `{schema.time.column}` AS {_quoted(schema.time.expression)}")
    if schema.keys:
        keys = ", ".join(f"`{key}`" for key in schema.keys)
        lines.append(f"CONSTRAINT `PK_{'_'.join(schema.keys)}` PRIMARY KEY ({keys}) NOT ENFORCED")
    partition = ", ".join(f"`{key}`" for key in descriptor.partition_keys)
    options = sorted({"connector": descriptor.connector, **descriptor.options}.items())
    return "\n".join(
        [
            f"CREATE TABLE `default_catalog`.`default_database`.`{path}` (",
            ",\n".join(f"  {line}" for line in lines),
            ")",
            *([] if descriptor.comment is None else [f"COMMENT {_literal(descriptor.comment)}"]),
            *([f"PARTITIONED BY ({partition})"] if partition else []),
            "WITH (",
            ",\n".join(f"  {_literal(key)} = {_literal(value)}" for key, value in options),
            ")\n",
        ]
    )


def create_view_text(statement: CreateView, columns: Sequence[str], query: str) -> str:
    """The CREATE VIEW statement of a view, as Flink writes it."""
    kind = "TEMPORARY VIEW" if statement.is_temporary else "VIEW"
    names = ",\n".join(f"  `{name}`" for name in columns)
    comment = "" if statement.comment is None else f"COMMENT {_literal(statement.comment)}\n"
    path = f"`default_catalog`.`default_database`.`{statement.path}`"
    return f"CREATE {kind} {path} (\n{names}\n)\n{comment}AS {query}\n"


def _literal(text: object) -> str:
    return "'{}'".format(str(text).replace("'", "''"))


def _quoted(expression: str) -> str:
    """An expression with its names in quotes."""
    return str(sqlglot().parse_one(expression, read="flink").sql(dialect="flink", identify=True))


def _whole_type(data_type: DataType) -> str:
    """A type without the short names STRING and BYTES."""
    parts = str(data_type).split("`")  # every second part is a name
    for place in range(0, len(parts), 2):
        for short, whole in (("STRING", "VARCHAR"), ("BYTES", "VARBINARY")):
            parts[place] = re.sub(rf"\b{short}\b", f"{whole}(2147483647)", parts[place])
    return "`".join(parts)


def statement_of(text: str, functions: frozenset[str] = frozenset()) -> Any:
    """One statement. `functions` are the names of the user's functions, in capitals.

    Raises:
        GraphError: The text is not one statement.
    """
    reader = _Reader(text, functions)
    statement = reader.statement()
    reader.end()
    return statement


class _Reader:
    """Reads statements token by token."""

    def __init__(self, text: str, functions: frozenset[str]) -> None:
        self._text = text.strip()
        self._functions = functions
        library = sqlglot()
        try:
            self._tokens = library.tokenize(self._text, read="flink")
        except library.errors.SqlglotError as error:
            raise GraphError(f"the statement can't be read: {error}") from error
        self._place = 0

    def is_at_end(self) -> bool:
        return self._place >= len(self._tokens)

    def end(self) -> None:
        self.skip(";")
        if not self.is_at_end():
            token = self._tokens[self._place]
            raise GraphError(
                f"line {token.line} has {token.text!r} after the end of the statement; execute_sql() takes one "
                f"statement, so call it once for each"
            )

    def statement(self) -> Any:
        for words, read in (
            (("CREATE",), self._create),
            (("DROP",), self._drop),
            (("INSERT",), self._insert),
            (("SET",), self._set),
            (("SHOW",), self._show),
            (("DESCRIBE", "DESC"), lambda: Show("COLUMNS", self._name())),
            (("USE",), self._use),
            (("EXPLAIN",), self._explain),
        ):
            if any(map(self.skip, words)):
                return read()
        if any(map(self._is, ("SELECT", "WITH", "VALUES", "("))):
            return Select(self._query())
        for word, instead in _REFUSED.items():
            if self._is(word):
                raise UnsupportedFeatureError(f"{word} is not supported; {instead}")
        raise self._unexpected("CREATE, DROP, INSERT, SELECT, SET, SHOW, DESCRIBE or EXPLAIN")

    def _create(self) -> Any:
        if self.skip("OR"):  # Flink creates, too: a statement with a name that exists fails
            self._expect("REPLACE")
        is_temporary = self.skip("TEMPORARY")
        if self.skip("TABLE"):
            return self._create_table()
        if self.skip("VIEW"):
            return self._create_view(is_temporary)
        self.skip("SYSTEM")
        for words, instead in _NOT_CREATED.items():
            if self._is(words.split()[0]):
                raise UnsupportedFeatureError(f"CREATE {words} is not supported; {instead}")
        raise self._unexpected("TABLE or VIEW")

    def _drop(self) -> Drop:
        self.skip("TEMPORARY")
        if not (self.skip("TABLE") or self.skip("VIEW")):
            raise self._unexpected("TABLE or VIEW")
        exists = self.skip("IF") and self.skip("EXISTS")
        return Drop(self._name(), exists)

    def _insert(self) -> Insert:
        if self.skip("OVERWRITE"):
            raise GraphError(
                "INSERT OVERWRITE is not supported: sinks append; delete old files before the job"
            )
        self._expect("INTO")
        path = self._name()
        partition = tuple(self._partition()) if self.skip("PARTITION") else ()
        columns = tuple(self._names()) if self._is("(") else ()
        return Insert(path, columns, self._query(), partition)

    def _partition(self) -> Iterator[tuple[str, str]]:
        self._expect("(")
        while not self.skip(")"):
            name, _ = self._name(), self._expect("=")
            yield name, self._until((",", ")"))
            self.skip(",")

    def _set(self) -> Set:
        key, _, value = self._string(), self._expect("="), self._string()
        return Set(key, value)

    def _show(self) -> Show:
        shown = self._rest().rstrip("; ")
        what = " ".join(shown.upper().split())
        for each in _SHOWN_OF_ONE:
            if what.startswith(f"{each} "):
                return Show(each, _Reader(shown.split(None, 2)[2], self._functions).path())
        if what not in _SHOWN:
            known = ", ".join((*_SHOWN, *(f"{each} name" for each in _SHOWN_OF_ONE)))
            raise UnsupportedFeatureError(f"SHOW {shown} is not supported; there are: {known}")
        return Show(what)

    def _explain(self) -> Explain:
        reader = _Reader(self._rest(), self._functions)
        details = []
        if reader.skip("PLAN"):
            reader.skip("FOR")
        while found := next(filter(reader.skip, _DETAILS), None):
            details.append(found)
            reader.skip(",")
        statement = reader.statement()
        reader.end()
        return Explain(tuple(details), statement)

    def _rest(self) -> str:
        """The rest of the statement. sqlglot reads what follows SHOW and EXPLAIN as one token."""
        rest = "" if self.is_at_end() else str(self._tokens[self._place].text)
        self._place = len(self._tokens)
        return rest

    def path(self) -> str:
        """The name of a table, which is the whole text."""
        name = self._name()
        self.end()
        return name

    def _use(self) -> Use:
        self.skip("CATALOG")
        name = self._name()
        if plain_path(f"{name}.x") != "x" and name != "default_catalog":
            raise UnsupportedFeatureError(f"USE {name} is not supported; {_ONE_CATALOG}")
        return Use()

    def _create_table(self) -> CreateTable:
        exists = self._if_not_exists()
        path = self._name()
        schema = self._schema(path) if self._is("(") else Schema(())
        comment = self._string() if self.skip("COMMENT") else None
        keys: tuple[str, ...] = ()
        if self.skip("PARTITIONED"):
            self.skip("BY")
            keys = tuple(self._names())
        options: dict[str, str] = {}
        if self.skip("WITH"):
            self._expect("(")
            while not self.skip(")"):
                key, _, value = self._string(), self._expect("="), self._string()
                options[key] = value
                self.skip(",")
        like = None
        if self.skip("LIKE"):
            like = self._like(path)
        if self._is("AS"):
            raise GraphError(
                f"table '{path}': CREATE TABLE AS is not supported; write CREATE TABLE, and then INSERT INTO"
            )
        connector = options.pop("connector", "")
        if not connector and "connector.type" in options:
            raise GraphError(
                f"table '{path}' has options of Flink 1.10: 'connector.type' is now 'connector', 'format.type' is "
                "'format', and 'connector.path' is 'path'; use the options that Flink's page of the connector lists"
            )
        if not connector and like is None:
            raise GraphError(
                f"table '{path}' has no connector; add WITH ('connector' = '...'): catalogs of managed tables are not "
                "supported"
            )
        descriptor = TableDescriptor(connector, schema, options, comment, keys)
        return CreateTable(path, descriptor, exists, like)

    def _like(self, path: str) -> Like:
        other, strategies = self._name(), dict[str, str]()
        if self.skip("("):
            while not self.skip(")"):
                strategy = next(filter(self.skip, STRATEGIES), None)
                part = next(filter(self.skip, (*PARTS, "ALL")), None) if strategy else None
                if strategy is None or part is None:
                    raise self._unexpected(
                        "INCLUDING, EXCLUDING or OVERWRITING, and a part of a table"
                    )
                checked_strategy(path, strategy, part)
                strategies[part] = strategy
        return Like(other, strategies)

    def _schema(self, path: str) -> Schema:
        builder = Schema.new_builder()
        self._expect("(")
        while not self.skip(")"):
            if self.skip("WATERMARK"):
                self._expect("FOR")
                column = self._name()
                self._expect("AS")
                builder.watermark(column, self._until((",", ")")))
            elif self._is("PRIMARY") or self._is("PRIMARY KEY") or self._is("CONSTRAINT"):
                if self.skip("CONSTRAINT"):
                    self._name()
                self._expect("PRIMARY")
                self.skip("KEY")
                builder.primary_key(*self._names())
                self.skip("NOT")
                self.skip("ENFORCED")
            else:
                self._column(builder)
            if not self.skip(",") and not self._is(")"):
                raise self._unexpected(f"',' or ')' in the columns of '{path}'")
        return builder.build()

    def _column(self, builder: Schema.Builder) -> None:
        name = self._name()
        if self.skip("AS"):
            builder.column_by_expression(name, self._until((",", ")", "COMMENT")))
        else:
            data_type = self._until((",", ")", "METADATA", "COMMENT", "PRIMARY"))
            if self.skip("METADATA"):
                key = self._string() if self.skip("FROM") else None
                builder.column_by_metadata(name, data_type, key, self.skip("VIRTUAL"))
            else:
                builder.column(name, data_type)
            if self.skip("PRIMARY"):
                self.skip("KEY")
                builder.primary_key(name)
                self.skip("NOT")
                self.skip("ENFORCED")
        if self.skip("COMMENT"):
            self._string()

    def _create_view(self, is_temporary: bool) -> CreateView:
        exists = self._if_not_exists()
        path = self._name()
        columns = tuple(self._names()) if self._is("(") else ()
        comment = self._string() if self.skip("COMMENT") else None
        self._expect("AS")
        return CreateView(path, self._query(), exists, columns, comment, is_temporary)

    def _if_not_exists(self) -> bool:
        return self.skip("IF") and self.skip("NOT") and self.skip("EXISTS")

    def _query(self) -> Any:
        return parsed(self._until((";",)), "the query", self._functions)

    # Tokens

    def _is(self, word: str) -> bool:
        return (
            not self.is_at_end()
            and self._tokens[self._place].text.upper() == word
            and not self._is_quoted()
        )

    def _is_quoted(self) -> bool:
        return self._text[self._tokens[self._place].start] in "'`"

    def skip(self, word: str) -> bool:
        """Whether the next token is this word. If so, it is consumed."""
        # sqlglot reads some pairs of words as one token: PRIMARY KEY.
        if not self.is_at_end() and self._tokens[self._place].text.upper().startswith(f"{word} "):
            self._place += 1
            return True
        found = self._is(word)
        self._place += found
        return found

    def _expect(self, word: str) -> str:
        if not self.skip(word):
            raise self._unexpected(word)
        return word

    def _name(self) -> str:
        if self.is_at_end():
            raise self._unexpected("a name")
        parts = [self._tokens[self._place].text]
        self._place += 1
        while self.skip("."):
            parts.append(self._tokens[self._place].text)
            self._place += 1
        return plain_path(".".join(parts))

    def _names(self) -> list[str]:
        self._expect("(")
        names = []
        while not self.skip(")"):
            names.append(self._name())
            self.skip(",")
        return names

    def _string(self) -> str:
        if self.is_at_end() or self._text[self._tokens[self._place].start] != "'":
            raise self._unexpected("a text in single quotes")
        self._place += 1
        return str(self._tokens[self._place - 1].text)

    def _until(self, ends: Sequence[str]) -> str:
        """The text up to one of some tokens, outside of brackets."""
        begin, depth, angles = self._place, 0, 0
        while not self.is_at_end():
            token = self._tokens[self._place]
            text = "" if self._is_quoted() else token.text.upper()
            if not depth and not angles and text.split(" ")[0] in ends:
                break
            depth += (text in _OPENING) - (text in _CLOSING)
            if text == "<" and self._tokens[self._place - 1].text.upper() in _GENERIC:
                angles += 1
            elif angles:
                angles -= text.count(">") if set(text) == {">"} else 0
                angles += text == "<"
            self._place += 1
        if begin == self._place:
            raise self._unexpected("an expression")
        first, last = self._tokens[begin], self._tokens[self._place - 1]
        return self._text[first.start : last.end + 1]

    def _unexpected(self, expected: str) -> GraphError:
        if self.is_at_end():
            return GraphError(
                f"the statement ends, but {expected} is expected: {self._text[-60:]!r}; complete the SQL"
            )
        token = self._tokens[self._place]
        return GraphError(
            f"line {token.line} of the statement has {token.text!r}, but {expected} is expected; correct the SQL"
        )
