"""The options of a table's connector, and what a connector makes of them: a source."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from opchain.compiler.table.expressions import Column
from opchain.runtime.configuration.options import MemorySize
from opchain.runtime.configuration.text import parse_boolean, parse_integer
from opchain.runtime.errors import GraphError
from opchain.runtime.time import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.runtime.functions.source import Source
    from opchain.runtime.types.record_types import RowTypeInfo

_LOG = logging.getLogger("opchain.job")

T = TypeVar("T")


class TableSource(NamedTuple):
    """A source of rows of a table's physical columns, and then its metadata columns.

    In JSON and CSV the values of some types are texts: see `wire_values`.
    """

    source: Source[Any]
    names: list[str]
    types: list[Any]
    gives_rows: bool = True

    @staticmethod
    def of_rows(source: Source[Any], rows: RowTypeInfo) -> TableSource:
        """A source of rows of a type, without metadata columns."""
        return TableSource(source, list(rows.get_field_names()), list(rows.field_types))


class Options:
    """The options of one table. Options that no connector reads are mistakes."""

    def __init__(self, descriptor: TableDescriptor, path: str) -> None:
        assert descriptor.schema is not None
        self.descriptor = descriptor
        self.connector = descriptor.connector
        self.path = path
        self.schema = descriptor.schema
        self.columns = [Column(*each) for each in descriptor.schema.columns]
        self._left = dict(descriptor.options)

    def take(self, *names: str, default: str | None = None) -> str | None:
        """Takes the value of an option, which may have several names."""
        found = [self._left.pop(name) for name in names if name in self._left]
        return found[0] if found else default

    def need(self, *names: str) -> str:
        """The value of an option.

        Raises:
            GraphError: It is missing.
        """
        found = self.take(*names)
        if found is None:
            raise GraphError(
                f"table '{self.path}': the connector '{self.connector}' needs the option '{names[0]}'; add it to WITH (...)"
            )
        return found

    def flag(self, name: str) -> bool:
        """Whether an option is `true`. Default: false.

        Raises:
            GraphError: It is neither `true` nor `false`.
        """
        return self._parsed(name, parse_boolean) or False

    def number(self, name: str) -> int | None:
        """The value of an option that is a whole number.

        Raises:
            GraphError: It is something else.
        """
        return self._parsed(name, parse_integer)

    def needed_number(self, name: str) -> int:
        """The value of an option that is a whole number.

        Raises:
            GraphError: It is missing, or something else.
        """
        return self._parse(name, self.need(name), parse_integer)

    def duration(self, name: str) -> Duration | None:
        """The value of an option that is a duration: `10 s`.

        Raises:
            GraphError: It is something else.
        """
        return self._parsed(name, Duration.parse)

    def memory_size(self, name: str) -> int | None:
        """The bytes of an option that is a size: `128 MB`.

        Raises:
            GraphError: It is something else.
        """
        found = self._parsed(name, MemorySize.parse)
        return None if found is None else found.get_bytes()

    def one_of(self, name: str, choices: Mapping[str, T], default: str) -> T:
        """The choice that the value of an option names.

        Raises:
            GraphError: There is no such choice.
        """
        value = self.take(name, default=default) or ""
        if value not in choices:
            *others, last = choices
            raise GraphError(
                f"table '{self.path}': {name} is '{value}'; use {', '.join(others)} or {last}"
            )
        return choices[value]

    def _parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        value = self.take(name)
        return None if value is None else self._parse(name, value, parse)

    def _parse(self, name: str, value: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(value)
        except ValueError as error:
            raise GraphError(f"table '{self.path}': the option '{name}': {error}") from None

    def below(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, without it."""
        names = [name for name in self._left if name.startswith(prefix)]
        return {name[len(prefix) :]: self._left.pop(name) for name in names}

    def drop(self, *names: str) -> None:
        """Drops options that only matter for the other direction. A name with a dot at its end is a prefix."""
        for name in names:
            if name.endswith("."):
                self.below(name)
            else:
                self.take(name)

    def without_effect(self, why: str, *names: str) -> None:
        """Drops options that have no effect, with a warning."""
        for name in names:
            value = self.take(name)
            if value is not None:
                self.warn(name, value, why)

    def warn(self, name: str, value: str, why: str) -> None:
        """Logs that an option has no effect."""
        text = "table '%s': the option '%s' = '%s' has no effect: %s"
        _LOG.warning(text, self.path, name, value, why)

    def finish(self) -> None:
        """Refuses options that were not read.

        Raises:
            GraphError: An option was not read.
        """
        if self._left:
            raise GraphError(
                f"table '{self.path}': the connector '{self.connector}' does not know the option '{min(self._left)}'; "
                "remove it, or correct its name"
            )
