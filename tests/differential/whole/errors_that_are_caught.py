"""Functions that raise and catch: errors of conversions, of state, of types; try, finally and else with return."""

# mode: STREAMING
# parallelism: 1
import json
import re

from pyflink.common import Row, Types
from pyflink.datastream import (
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from pyflink.datastream.state import ValueStateDescriptor

ERRORS = OutputTag("errors", Types.STRING())
LINES = [
    "1",
    "x",
    "",
    "2.5",
    '{"a": [1, {"b": null}]}',
    "[1, 2",
    "null",
    "-0",
    "1e400",
    '"\\u00e9"',
    "9" * 25,
]


class BadLine(ValueError):
    def __init__(self, line, *more):
        super().__init__(line, *more)
        self.line = line

    def __str__(self):
        return f"bad line: {self.line!r}"


def number(line):
    try:
        value = int(line)
    except ValueError as error:
        return type(error).__name__
    else:
        return value * 2
    finally:
        line = None


def overridden(line):
    for attempt in range(3):
        try:
            if attempt < 2:
                raise KeyError(attempt)
            return "returned"
        except KeyError as error:
            if error.args[0] == 0:
                continue
            line += str(error)
        finally:
            if line == "":
                return "in finally"
            line += "!"
    return line


class Parse(ProcessFunction):
    def process_element(self, value, ctx):
        try:
            found = json.loads(value)
            if found is None:
                raise BadLine(value)
        except json.JSONDecodeError as error:
            yield ERRORS, f"{error.msg} at {error.pos}"
        except BadLine as error:
            yield ERRORS, f"{error} {error.args}"
        else:
            yield json.dumps(found, sort_keys=True, ensure_ascii=False)


class Chained(MapFunction):
    def map(self, value):
        try:
            try:
                return {}[value]
            except KeyError as error:
                raise BadLine(value, 1) from error
        except BadLine as error:
            return repr(error), repr(error.__cause__), error.__context__ is error.__cause__


class Groups(FlatMapFunction):
    pattern = re.compile(r"(?P<key>\w+)=(?P<value>[^;]*);?")

    def flat_map(self, value):
        for found in self.pattern.finditer(value):
            yield found.groupdict(), found.span(), found["key"]


def guarded(value):
    with Suppress(ZeroDivisionError) as entered:
        return 10 // (value - 2), entered
    return "suppressed"


class Suppress:
    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return "entered"

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self.kind)


def build(env, out):
    lines = env.from_collection(LINES, Types.STRING())
    out(lines.map(number), "number")
    out(lines.map(overridden), "overridden")
    parsed = lines.process(Parse(), Types.STRING())
    out(parsed, "parsed")
    out(parsed.get_side_output(ERRORS), "errors")
    out(lines.map(Chained()), "chained")
    out(env.from_collection(["a=1;b=;c=x y"]).flat_map(Groups()), "groups")
    out(env.from_collection([1, 2, 3]).map(guarded), "with")
    out(lines.map(lambda l: (l or None) and l.strip('"').isdigit() or "no"), "and or")
    out(lines.filter(lambda l: l and not l[0].isdigit()).map(len), "truth")
    out(
        lines.filter(lambda l: l[:1])
        .map(lambda l: l[::-1][:3] if len(l) > 2 else ...)
        .filter(lambda v: v is not ...),
        "ellipsis",
    )
