"""Types and values, to record how the coders of PyFlink convert them.

    <python of PyFlink> tests/differential/coder_values.py

writes coders.json.gz, which tests/runtime/types/test_coders.py compares.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).with_name("coders.json.gz")

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - without zone on purpose


class Text(str):
    """A str of another class."""

    __slots__ = ()


class Number(int):
    """An int of another class."""


def values(package: str) -> list[Any]:
    """What is written."""
    common = import_module(f"{package}.common")
    row = common.Row
    numbers = [0, 1, -1, 1.7, -1.7, True, False, 127, 128, 255, 256, -129, 2**15, 2**31 - 1, 2**31]
    numbers += [2**40, 2**63, -(2**63) - 1, 2**70, 0.1, 1e39, float("inf")]
    texts = ["5", "", "ab", Text("x"), Number(7), None, b"ab", Decimal("1.50"), Decimal("2E+3")]
    times = [
        dt.date(2020, 1, 2),
        MOMENT,
        MOMENT.replace(tzinfo=dt.timezone.utc),
        dt.time(1, 2, 3, 456789),
    ]
    containers = [(1, 2.5, 3), (1,), [1.5, 2], [1, None], [], {"a": 1.5}, {"a": None}, {1: 2}]
    rows = [row(1, 2, 3), row(a=1, b=2), row(b=1.5, a="x")]
    nested = [(1, "a"), ("a", 1.5), [[1.5]], ((1, 2), 3), common.Instant(1, 2)]
    return [*numbers, *texts, *times, *containers, *rows, *nested]


def types(package: str) -> dict[str, Any]:
    """The declared types by their names."""
    of = import_module(f"{package}.common").Types
    pair = of.TUPLE([of.INT(), of.INT()])
    basic = ("INT", "LONG", "SHORT", "BYTE", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BIG_DEC")
    found = {name: getattr(of, name)() for name in (*basic, "INSTANT", "PICKLED_BYTE_ARRAY")}
    found |= {name: getattr(of, name)() for name in ("SQL_DATE", "SQL_TIME", "SQL_TIMESTAMP")}
    return found | {
        "PRIMITIVE_ARRAY(INT)": of.PRIMITIVE_ARRAY(of.INT()),
        "PRIMITIVE_ARRAY(BYTE)": of.PRIMITIVE_ARRAY(of.BYTE()),
        "BASIC_ARRAY(INT)": of.BASIC_ARRAY(of.INT()),
        "OBJECT_ARRAY(TUPLE(INT, INT))": of.OBJECT_ARRAY(pair),
        "MAP(STRING, INT)": of.MAP(of.STRING(), of.INT()),
        "TUPLE(INT, INT)": pair,
        "TUPLE(STRING, INT)": of.TUPLE([of.STRING(), of.INT()]),
        "TUPLE(TUPLE(INT, INT), DOUBLE)": of.TUPLE([pair, of.DOUBLE()]),
        "ROW(INT, INT)": of.ROW([of.INT(), of.INT()]),
        "ROW(a STRING, b INT)": of.ROW_NAMED(["a", "b"], [of.STRING(), of.INT()]),
    }


def results(package: str, converter: Callable[[Any], Callable[[Any], Any]]) -> dict[str, str]:
    """The repr of what becomes of each value, or FAIL."""
    found = {}
    for name, record_type in types(package).items():
        convert = converter(record_type)
        for number, value in enumerate(values(package)):
            found[f"{number:02} {value!r} as {name}"] = convert(value)
    return found


def outcome(convert: Callable[[Any], Any], value: Any) -> str:
    """The repr of what a converter makes of a value, or FAIL."""
    try:
        return repr(convert(value))
    except Exception:  # noqa: BLE001 - whatever it is, the value is refused
        return "FAIL"


def of_pyflink(record_type: Any) -> Callable[[Any], str]:
    """What PyFlink's coder makes of a value, asked in a process of its own: some values crash it."""
    coders: Any = import_module("pyflink.fn_execution.coders")
    coder = coders.from_type_info(record_type).get_impl()

    def ask(value: Any) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, outcome(lambda v: coder.decode(coder.encode(v)), value).encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            return pipe.read().decode() or "FAIL"

    return ask


if __name__ == "__main__":
    text = json.dumps(results("pyflink", of_pyflink), indent=0, ensure_ascii=False)
    RECORDED.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
