from __future__ import annotations

import json
from typing import Any

import pytest

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.errors import UnsupportedFeatureError


def struct(**fields: Any) -> Any:
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": of, "nullable": True, "metadata": {}}
            for name, of in fields.items()
        ],
    }


def array(of: Any) -> Any:
    return {"type": "array", "elementType": of, "containsNull": False}


def mapping(key: Any, value: Any) -> Any:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


KEPT: list[tuple[Any, str]] = [
    ("void", "void"),
    ("byte", "tinyint"),
    ("short", "smallint"),
    ("integer", "int"),
    ("long", "bigint"),
    ("decimal(10,2)", "decimal(10,2)"),
    ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
    ("time(6)", "time(6)"),
    ("interval hour to second", "interval hour to second"),
    (struct(a="long", b=array("string")), "struct<a: bigint, b: array<string>>"),
    (mapping("string", struct(t="timestamp_ntz")), "map<string, struct<t: timestamp_ntz>>"),
]


@pytest.mark.parametrize(("given", "sql"), KEPT)
def test_a_spark_type_is_read_from_its_json_and_written_back(given: Any, sql: str) -> None:
    read = SparkType.read(given)
    assert read.to_json() == given
    assert read.sql == sql
    assert SparkType.parse(json.dumps(given)) == read


def test_varchar_and_char_are_read_as_string() -> None:
    assert SparkType.read("varchar(7)") == SparkType.read("char(3)") == SparkType("string")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            struct(m="interval year to month"),
            "column 'm' has the Spark type interval year to month",
        ),
        (struct(s=struct(v="variant")), r"column 's\.v' has the Spark type variant.*to_json"),
        (struct(a=array("interval")), r"column 'a\[\]' has the Spark type interval,"),
        (struct(u={"type": "udt"}), "column 'u' has the Spark type udt"),
        (
            struct(m=mapping(array("long"), "long")),
            "column 'm' is a map with keys of type array<bigint>",
        ),
        ("geometry(4326)", r"there is the Spark type geometry\(4326\)"),
        (
            {
                "type": "struct",
                "fields": [*struct(a="long")["fields"], *struct(a="date")["fields"]],
            },
            "there are two columns 'a'",
        ),
    ],
)
def test_types_that_records_cannot_hold_are_refused(given: Any, said: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=said):
        SparkType.read(given)
