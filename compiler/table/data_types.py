"""Types of table columns, with PyFlink's names; those that can become records' types."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.refusals import refuses

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_information import TypeInformation


@dataclass(frozen=True)
class DataType:
    """A column's type: SQL's name of it, its parameters, and whether None is allowed.

    >>> print(DataTypes.DECIMAL(10, 2, nullable=False))
    DECIMAL(10, 2) NOT NULL
    """

    name: str
    parameters: tuple[int, ...] = ()
    is_nullable: bool = True

    def __str__(self) -> str:
        parameters = f"({', '.join(map(str, self.parameters))})" if self.parameters else ""
        return f"{self.name}{parameters}{'' if self.is_nullable else ' NOT NULL'}"

    def not_null(self) -> DataType:
        """The same type without None."""
        return replace(self, is_nullable=False)

    def nullable(self) -> DataType:
        """The same type with None."""
        return replace(self, is_nullable=True)

    def type_information(self) -> TypeInformation[Any]:
        """The type of such values in a stream."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

        made: TypeInformation[Any] = getattr(Types, _TYPE_INFORMATION[self.name])()
        return made


_TYPE_INFORMATION = {
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "STRING": "STRING",
    "BOOLEAN": "BOOLEAN",
    "DECIMAL": "BIG_DEC",
    "TINYINT": "BYTE",
    "SMALLINT": "SHORT",
    "INT": "INT",
    "BIGINT": "LONG",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
}
_NUMBER_OF_PARAMETERS = {"CHAR": 1, "VARCHAR": 1, "DECIMAL": 2}
_ALSO_CALLED = {"INTEGER": "INT"}
_SQL_TYPE = re.compile(r"\s*([A-Z]+)\s*(?:\(([\d\s,]*)\))?\s*(NOT NULL|NULL)?\s*", re.IGNORECASE)
_MISSING = "columns are CHAR, VARCHAR, STRING, BOOLEAN, DECIMAL or numbers"


def _simple(name: str) -> Callable[..., DataType]:
    def of(nullable: bool = True) -> DataType:
        return DataType(name, (), nullable)

    of.__doc__ = f"SQL's {name}."
    return of


class DataTypes:
    """Makes types of columns; a type that is not supported is refused when it is asked for."""

    STRING = staticmethod(_simple("STRING"))
    BOOLEAN = staticmethod(_simple("BOOLEAN"))
    TINYINT = staticmethod(_simple("TINYINT"))
    SMALLINT = staticmethod(_simple("SMALLINT"))
    INT = staticmethod(_simple("INT"))
    BIGINT = staticmethod(_simple("BIGINT"))
    FLOAT = staticmethod(_simple("FLOAT"))
    DOUBLE = staticmethod(_simple("DOUBLE"))

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Texts of one length."""
        return DataType("CHAR", (length,), nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Texts up to a length."""
        return DataType("VARCHAR", (length,), nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DataType:  # noqa: N802 - PyFlink's name
        """Decimals of `precision` digits, `scale` of them behind the point."""
        return DataType("DECIMAL", (precision, scale), nullable)


for _name in (
    *("NULL", "BINARY", "VARBINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("TIMESTAMP_WITH_LOCAL_TIME_ZONE", "ARRAY", "LIST_VIEW", "MAP", "MAP_VIEW", "MULTISET"),
    *("ROW", "FIELD", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "INTERVAL"),
):
    setattr(DataTypes, _name, staticmethod(refuses(f"DataTypes.{_name}", _MISSING)))


def data_type_of(text: str) -> DataType:
    """The type that SQL's text names.

    >>> data_type_of("decimal(10, 2) not null")
    DataType(name='DECIMAL', parameters=(10, 2), is_nullable=False)

    Raises:
        ValueError: It names no supported type, or has another number of parameters than the type.
    """
    match = _SQL_TYPE.fullmatch(text)
    name = "" if match is None else match[1].upper()
    name = _ALSO_CALLED.get(name, name)
    if match is None or name not in _TYPE_INFORMATION:
        raise ValueError(f"'{text}' is no supported type of a column; {_MISSING}")
    parameters = tuple(int(each) for each in (match[2] or "").split(",") if each.strip())
    if len(parameters) != _NUMBER_OF_PARAMETERS.get(name, 0):
        wanted = _NUMBER_OF_PARAMETERS.get(name, 0)
        raise ValueError(f"'{text}' has {len(parameters)} parameters; a {name} has {wanted}")
    return DataType(name, parameters, (match[3] or "").upper() != "NOT NULL")
