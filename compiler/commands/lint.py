"""`opchain lint`: finds expensive or wrong parts of a program, without running a job.

`LINT_RULES` has one function per rule. A rule looks at the StreamGraph and at the code of user functions, and yields
findings. It reads code objects, not source text: names are resolved in the globals of their function, so an import
alias does not hide a module.

A new rule is a function, an entry in LINT_RULES, and a case in the test of this file.
"""

from __future__ import annotations

import datetime as dt
import dis
import inspect
import json
import os
import random
import re
import secrets
import sys
import time
import uuid
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import networkx as nx

from opchain.compiler.command_line.keys import literal
from opchain.compiler.command_line.output import answer, examples, note
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    Request,
    captured_program,
    takes_program,
)
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.layout import counted
from opchain.runtime.errors import KeyTypeError
from opchain.runtime.functions.callables import CallableFunction
from opchain.runtime.functions.function import Function
from opchain.runtime.measurements.hot_keys import KeySample
from opchain.runtime.program.operator_specs import (
    BroadcastProcessSpec,
    FilterSpec,
    FlatMapSpec,
    IntervalJoinSpec,
    KeyedBroadcastProcessSpec,
    KeyedCoProcessSpec,
    KeyedProcessSpec,
    LegacySourceSpec,
    MapSpec,
    ProcessSpec,
    ReduceSpec,
    SinkWriterSpec,
    SourceSpec,
    TimestampsWatermarksSpec,
    TwoPhaseSinkSpec,
    WindowSpec,
)
from opchain.runtime.state.keys.key_groups import default_max_parallelism
from opchain.runtime.state.keys.key_hashers import hasher_of_type
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.keys.pyflink_keys import pyflink_hasher
from opchain.runtime.watermarks.strategy import NoWatermarks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode
    from opchain.compiler.graph.transformation import CallSite

    _Broken = Iterator[tuple[StreamNode, str, str]]
    """The operators that break a rule, each with the text and the remedy of its finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to fix in a program.

    Attributes:
        rule: The stable name of the rule, for `--ignore` and SARIF.
        call_site: The user's line.
        text: What is wrong, and the consequence.
        remedy: What to change.
    """

    rule: str
    call_site: CallSite
    text: str
    remedy: str


class Rule(NamedTuple):
    """A rule, with what it is about for SARIF."""

    name: str
    about: str
    check: Callable[[_Program], _Broken]


class _Program(NamedTuple):
    """The program that the rules check."""

    graph: StreamGraph
    is_unbounded: bool

    def functions(self) -> Iterator[tuple[StreamNode, FunctionType]]:
        """Every Python function of an operator, including methods of function classes."""
        for node in self.graph.nodes():
            for name in ("function", "reduce", "aggregate", "functions"):
                given = getattr(node.spec, name, None)
                for function in given if isinstance(given, tuple) else (given,):
                    yield from ((node, each) for each in _python_functions(function))


def lint(plan: Plan, ignore: Iterable[str] = ()) -> list[Finding]:
    """The findings in a plan with a StreamGraph, in the order of the rules and of the operators.

    Raises:
        ValueError: `ignore` names a rule that does not exist.
    """
    ignored = set(ignore)
    unknown = sorted(ignored - {rule.name for rule in LINT_RULES})
    if unknown:
        names = ", ".join(rule.name for rule in LINT_RULES)
        raise ValueError(f"there is no rule {unknown[0]!r}; the rules are {names}")
    graph = required(plan.stream_graph)
    sources = [node.spec for node in graph.sources()]
    is_unbounded = any(
        isinstance(spec, SourceSpec | LegacySourceSpec) and not spec.is_bounded for spec in sources
    )
    program = _Program(graph, is_unbounded)
    return [
        Finding(rule.name, node.call_site, text, remedy)
        for rule in LINT_RULES
        if rule.name not in ignored
        for node, text, remedy in rule.check(program)
    ]


def _stateful_without_uid(program: _Program) -> _Broken:
    if not program.is_unbounded:
        return
    for node in program.graph.nodes():
        if node.uid is None and node.uid_hash is None and _keeps_state(node):
            yield (
                node,
                (
                    f"{node.label} keeps state and has no uid. Its state is found by the position of the operator, which "
                    "changes when operators are added, removed or chained differently"
                ),
                'set a uid that is unique in the program: .uid("...")',
            )


def _window_without_watermarks(program: _Program) -> _Broken:
    graph = program.graph
    for node in graph.nodes():
        if not _waits_for_watermarks(node):
            continue
        upstream = [graph.node(each) for each in nx.ancestors(graph.graph, node.id)]
        if not any(map(_emits_watermarks, upstream)):
            when = "never" if program.is_unbounded else "only when the input ends"
            then = f"it fires {when}"
            if not any(map(_assigns_timestamps, upstream)):
                then = "the job fails at the first record, because records have no timestamps"
            yield (
                node,
                f"{node.label} waits for watermarks, and nothing upstream emits any: {then}",
                "give the source a WatermarkStrategy, or call assign_timestamps_and_watermarks()",
            )


def _keyed_again_by_the_same_key(program: _Program) -> _Broken:
    graph = program.graph
    for node in graph.nodes():
        for edge in graph.in_edges(node.id):
            up, key_by = graph.node(edge.source), edge.partitioner.key_by
            if key_by is None or not isinstance(up.spec, ReduceSpec):
                continue
            if any(_same_code(key_by.selector, other and other.selector) for other in up.key_bys):
                yield (
                    node,
                    (
                        f"{up.label} is keyed by {key_by.name!r} already, and {node.label} sends its records through "
                        "another shuffle by the same key"
                    ),
                    "use reinterpret_as_keyed_stream() if the function keeps the key",
                )


def _rebalance_of_equals(program: _Program) -> _Broken:
    graph = program.graph
    for edge in graph.edges():
        up, down = graph.node(edge.source), graph.node(edge.target)
        is_asked_for = edge.partitioner_is_explicit
        is_rebalance = edge.partitioner.kind in (PartitionerKind.REBALANCE, PartitionerKind.SHUFFLE)
        if is_asked_for and is_rebalance and up.parallelism == down.parallelism:
            yield (
                down,
                (
                    f"{edge.partitioner.kind.value.lower()} between {up.label} and {down.label}, which both run "
                    f"{up.parallelism} subtasks, breaks the chain: every record is pickled and shuffled"
                ),
                "leave it out, unless the subtasks of the upstream operator are skewed",
            )


def _max_parallelism_too_low(program: _Program) -> _Broken:
    for node in program.graph.nodes():
        if isinstance(node.spec, WindowSpec) and node.spec.is_all:
            continue  # it has one subtask, whatever is set
        if node.is_keyed and 0 < node.max_parallelism < _ROOM_TO_GROW * node.parallelism:
            yield (
                node,
                (
                    f"{node.label} runs {counted(node.parallelism, 'subtask')} with max parallelism {node.max_parallelism}. State "
                    "cannot be rescaled beyond it, and a changed max parallelism drops the state"
                ),
                f"set a max parallelism of {_ROOM_TO_GROW * node.parallelism} or more before the first checkpoint",
            )


def _state_without_ttl(program: _Program) -> _Broken:
    if not program.is_unbounded:
        return
    by_node: dict[int, set[str]] = {}
    for node, function in program.functions():
        if node.is_keyed:
            by_node.setdefault(node.id, set()).update(_names(function.__code__))
    for node_id, names in by_node.items():
        descriptors = sorted(name for name in names if name.endswith("StateDescriptor"))
        if descriptors and not names & {"enable_time_to_live", "clear", "remove"}:
            node = program.graph.node(node_id)
            yield (
                node,
                (
                    f"{node.label} never drops the state of a key: it uses a {descriptors[0]}, and neither clears the state "
                    "nor lets it expire"
                ),
                "call enable_time_to_live() on the descriptor, or clear() the state in a timer",
            )


def _not_deterministic(program: _Program) -> _Broken:
    for node, function in program.functions():
        found = [each for each in _loaded(function) if each in _NOT_DETERMINISTIC]
        if found:
            yield (
                node,
                (
                    f"'{function.__qualname__}' of {node.label} calls {found[0].__qualname__}(). When Spark retries a task, records may "
                    "differ, or go to another key"
                ),
                "derive the value from the record, its timestamp, or the runtime context",
            )


def _sink_in_a_function(program: _Program) -> _Broken:
    for node, function in program.functions():
        clients = sorted(_modules(function) & _CLIENTS)
        if clients and isinstance(
            node.spec, MapSpec | FlatMapSpec | FilterSpec | ProcessSpec | KeyedProcessSpec
        ):
            yield (
                node,
                (
                    f"'{function.__qualname__}' of {node.label} uses {clients[0]}. Its writes are repeated when a task is "
                    "retried, and a read blocks the whole task"
                ),
                "write with a sink (JdbcSink, KafkaSink, FileSink, or one of your own), read with AsyncDataStream",
            )


def _returns_nothing(program: _Program) -> _Broken:
    seen = set()
    for node, function in program.functions():
        if (node.id, function.__name__) in seen:
            continue  # a method that a subclass overrides
        seen.add((node.id, function.__name__))
        given = getattr(node.spec, "function", None)
        is_callable = isinstance(node.spec, FilterSpec | ReduceSpec) and function is (
            given.function if isinstance(given, CallableFunction) else given
        )
        if (is_callable or function.__name__ in _GIVE_A_RESULT) and _gives_none(function):
            yield (
                node,
                f"'{function.__qualname__}' of {node.label} returns no value, but its result is used",
                "return the result",
            )


_GIVE_A_RESULT = ("filter", "reduce", "add")
"""Methods whose result opchain uses, and for which None makes no sense."""


def _gives_none(function: FunctionType) -> bool:
    """Whether a function comes to its end without a value.

    >>> def add(value, total): total + value
    >>> def merge(one, other): raise NotImplementedError
    >>> _gives_none(add), _gives_none(merge)
    (True, False)
    """
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return False
    before, given = None, set()
    for instruction in dis.get_instructions(function):
        if instruction.opname == "RETURN_CONST":
            given.add(instruction.argval is None)
        elif instruction.opname == "RETURN_VALUE":
            given.add(
                before is not None and before.opname == "LOAD_CONST" and before.argval is None
            )
        before = instruction
    return given == {True}


LINT_RULES: tuple[Rule, ...] = (
    Rule("stateful-without-uid", "state is found by position", _stateful_without_uid),
    Rule("no-watermarks", "an event-time window that nothing fires", _window_without_watermarks),
    Rule(
        "same-key-again", "a shuffle by the key that the records have", _keyed_again_by_the_same_key
    ),
    Rule("needless-rebalance", "a shuffle between equal parallelisms", _rebalance_of_equals),
    Rule("low-max-parallelism", "keyed state that cannot be rescaled", _max_parallelism_too_low),
    Rule("unbounded-state", "keyed state that never expires", _state_without_ttl),
    Rule("no-result", "a function that forgets to return its result", _returns_nothing),
    Rule("not-deterministic", "a retry gives other results", _not_deterministic),
    Rule(
        "sink-in-function", "a client of a database or service in a function", _sink_in_a_function
    ),
)

_ROOM_TO_GROW = 2
"""The max parallelism should be at least this many times the parallelism."""

_CLIENTS = {
    *("psycopg2", "psycopg", "pymysql", "MySQLdb", "sqlite3", "cx_Oracle", "pyodbc", "redis"),
    *("boto3", "requests", "httpx", "urllib3", "aiohttp", "pymongo", "elasticsearch", "cassandra"),
    *("kafka", "confluent_kafka", "pika"),
}

_NOT_DETERMINISTIC = (
    *(random.random, random.randint, random.choice, random.uniform, random.shuffle, random.gauss),
    *(random.sample, random.randrange, random.getrandbits, secrets.token_hex, secrets.token_bytes),
    *(uuid.uuid1, uuid.uuid4, time.time, time.time_ns, os.urandom),
    *(dt.datetime.now, dt.datetime.utcnow, dt.datetime.today, dt.date.today),
)


def _keeps_state(node: StreamNode) -> bool:
    kinds = (
        *(SourceSpec, LegacySourceSpec, ReduceSpec, WindowSpec, IntervalJoinSpec, KeyedProcessSpec),
        *(KeyedCoProcessSpec, BroadcastProcessSpec, KeyedBroadcastProcessSpec, SinkWriterSpec),
        TwoPhaseSinkSpec,
    )
    return isinstance(node.spec, kinds)


def _waits_for_watermarks(node: StreamNode) -> bool:
    return isinstance(node.spec, IntervalJoinSpec) or (
        isinstance(node.spec, WindowSpec) and node.spec.assigner.is_event_time()
    )


def _emits_watermarks(node: StreamNode) -> bool:
    spec = node.spec
    if isinstance(spec, TimestampsWatermarksSpec):
        return not isinstance(spec.strategy.generator_supplier, NoWatermarks)
    if isinstance(spec, SourceSpec):
        strategy = spec.watermark_strategy
        return strategy is not None and not isinstance(strategy.generator_supplier, NoWatermarks)
    return (
        isinstance(spec, LegacySourceSpec) and not spec.is_bounded
    )  # it may emit watermarks itself


def _assigns_timestamps(node: StreamNode) -> bool:
    spec = node.spec
    if isinstance(spec, TimestampsWatermarksSpec):
        return spec.strategy.timestamp_assigner is not None
    return isinstance(spec, LegacySourceSpec) or (
        isinstance(spec, SourceSpec) and spec.makes_timestamps
    )


def _same_code(one: Any, other: Any) -> bool:
    first, second = list(_python_functions(one)), list(_python_functions(other))
    return (
        bool(first)
        and [f.__code__.co_code for f in first] == [f.__code__.co_code for f in second]
        and (
            [(f.__code__.co_consts, f.__code__.co_names) for f in first]
            == [(f.__code__.co_consts, f.__code__.co_names) for f in second]
        )
    )


def _python_functions(given: Any) -> Iterator[FunctionType]:
    """The functions of a user's object: the function itself, or the methods of the user's classes."""
    if isinstance(given, CallableFunction):
        given = given.function
    if inspect.ismethod(given):
        given = given.__func__
    if isinstance(given, FunctionType):
        if not given.__module__.startswith("opchain."):
            yield given
    elif isinstance(given, Function):
        for kind in type(given).__mro__:
            if not kind.__module__.startswith("opchain.") and kind is not object:
                yield from (each for each in vars(kind).values() if isinstance(each, FunctionType))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects of a function, and of the functions, comprehensions and lambdas in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names(code: CodeType) -> set[str]:
    return {name for each in _codes(code) for name in each.co_names}


def _loaded(function: FunctionType) -> Iterator[Any]:
    """Every object that a function reads by name: globals, its own imports, and attributes of both.

    >>> def pick(): return random.choice([1, 2])
    >>> [each.__name__ for each in _loaded(FunctionType(pick.__code__, {"random": random}))]
    ['random', 'choice']
    """
    for code in _codes(function.__code__):
        imported: dict[str, Any] = {}
        current: Any = None
        for name, argument in _instructions(code):
            if name == "IMPORT_NAME":
                current = sys.modules.get(argument, ModuleType(argument))
            elif name in ("STORE_FAST", "STORE_DEREF", "STORE_NAME"):
                imported[argument] = current
                current = None
            elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
                current = function.__globals__.get(argument)
            elif name.startswith(("LOAD_FAST", "LOAD_DEREF")):
                current = imported.get(argument) if isinstance(argument, str) else None
            elif name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
                current = getattr(current, argument, None)
            else:
                current = None
            if current is not None:
                yield current


def _instructions(code: CodeType) -> Iterator[tuple[str, Any]]:
    """The names and arguments of the instructions. Python 3.13 loads and stores two variables at once."""
    for instruction in dis.get_instructions(code):
        single = re.findall("LOAD_FAST|STORE_FAST", instruction.opname)
        if len(single) > 1:
            yield from zip(single, instruction.argval, strict=True)
        else:
            yield instruction.opname, instruction.argval


def _modules(function: FunctionType) -> set[str]:
    """The top-level modules whose objects a function uses."""
    names = (
        each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)
        for each in _loaded(function)
    )
    return {name.partition(".")[0] for name in names if isinstance(name, str)}


def findings_text(findings: list[Finding]) -> str:
    """Two lines for each finding, with its place and its remedy, and a line with the counts."""
    if not findings:
        return "nothing found\n"
    lines = []
    for finding in findings:
        lines.append(f"{finding.call_site}: {finding.text} [{finding.rule}]")
        lines.append(f"    {finding.remedy}")
    numbers = Counter(finding.rule for finding in findings)
    kinds = ", ".join(f"{number} {rule}" for rule, number in numbers.items())
    lines.append(f"{len(findings)} found: {kinds}")
    return "\n".join(lines) + "\n"


def findings_sarif(findings: list[Finding], version: str) -> str:
    """The findings as SARIF 2.1.0, which code hosts and editors read."""
    rules = [{"id": rule.name, "shortDescription": {"text": rule.about}} for rule in LINT_RULES]
    results = [
        {
            "ruleId": finding.rule,
            "level": "warning",
            "message": {"text": f"{finding.text}. To fix this, {finding.remedy}."},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.call_site.path},
                        "region": {"startLine": max(finding.call_site.line, 1)},
                    }
                }
            ],
        }
        for finding in findings
    ]
    driver = {"name": "opchain", "semanticVersion": version, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


_HOTTEST = 5


class KeySkew(NamedTuple):
    """How the keys of a sample are distributed over the subtasks of one keyed operator.

    `problem` is set if the operator's key type refuses a key. `keys` has the five hottest keys, each with its key group
    and its records. `groups` has the five hottest key groups, each with its records.
    """

    label: str
    records: tuple[int, ...]
    problem: str | None = None
    keys: tuple[tuple[str, int, int], ...] = ()
    groups: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.label}: the sample does not fit its keys: {self.problem}"
        total = sum(self.records)
        shares = ", ".join(
            f"{number}: {count / total:.0%}" for number, count in enumerate(self.records)
        )
        times = max(self.records) * len(self.records) / total
        keys = ", ".join(
            f"{text} {count / total:.1%} (key group {group})" for text, group, count in self.keys
        )
        groups = ", ".join(f"{group} {count / total:.1%}" for group, count in self.groups)
        lines = [
            f"{self.label}: records by subtask {shares}; the busiest has {times:.1f} times its share",
            f"    hottest keys: {keys}",
            f"    hottest key groups: {groups}",
        ]
        if self.keys[0][2] * len(self.records) > total and len(self.records) > 1:
            lines.append(
                f"    the key {self.keys[0][0]} alone has more than the share of a subtask, and no parallelism "
                "divides it: aggregate by a finer key first, and then by this one"
            )
        return "\n".join(lines)


def key_skew(plan: Plan, keys: Sequence[Any]) -> list[KeySkew]:
    """The skew of each keyed operator for records with these keys; none without keys."""
    found = []
    for node in required(plan.stream_graph).nodes():
        key_by = next((each for each in node.key_bys if each is not None), None)
        if key_by is None or not keys:
            continue
        size = max(node.parallelism, 1)
        groups = node.max_parallelism
        groups = groups if groups > 0 else default_max_parallelism(size)
        hasher = pyflink_hasher(key_by.key_type, hasher_of_type(key_by.key_type))
        try:
            router = KeyRouter(groups, size, hasher)
            channels = router.route(list(keys))
            sample = KeySample(router, samples=False)
            sample.add(keys)
            sample.fold()
        except (KeyTypeError, TypeError, ValueError) as error:
            found.append(KeySkew(node.label, (), str(error)))
            continue
        counts = Counter(channels)
        hottest = sample.hottest(0)
        found.append(
            KeySkew(
                node.label,
                tuple(counts[channel] for channel in range(size)),
                keys=hottest.keys[:_HOTTEST],
                groups=hottest.groups[:_HOTTEST],
            )
        )
    return found


@click.command(
    "lint",
    cls=ProgramCommand,
    short_help="Finds mistakes in FILE, and prints the line and a remedy.",
    epilog=examples(
        "opchain lint job.py",
        "opchain lint job.py --ignore not-deterministic --format sarif --sample keys.txt",
    ),
)
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How the findings are printed.",
)
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice([rule.name for rule in LINT_RULES]),
    metavar="RULE",
    help="A rule to omit; may be repeated. Rules: " + ", ".join(r.name for r in LINT_RULES) + ".",
)
@click.option(
    "--sample",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="KEYS",
    help="A file with the key of a record on each line (a Python literal, or a string): shows how many records each "
    "subtask of a keyed operator would get.",
)
@takes_program
def lint_command(
    file: str, form: str, ignore: tuple[str, ...], sample: Path | None, request: Request
) -> None:
    """Finds mistakes in the program FILE. Prints the line of each, the reason, and what to change.

    FILE and ARGUMENTS are as for 'opchain plan'.

    Exit codes: 0 no mistakes, 1 mistakes, 2 the program is in error.
    """
    with captured_program(file, request) as program:
        plan = compile_program(program, "stream-graph")
        findings = lint(plan, ignore)
        if sample is not None:
            keys = [literal(line) for line in sample.read_text("utf-8").splitlines() if line]
            for skew in key_skew(plan, keys):
                note(str(skew))
        if form == "json":
            rows = [{**asdict(each), "call_site": str(each.call_site)} for each in findings]
            answer(json.dumps(rows, indent=2) + "\n")
        elif form == "sarif":
            answer(findings_sarif(findings, version("opchain")))
        else:
            answer(findings_text(findings))
    if findings:
        raise click.exceptions.Exit(1)


COMMANDS = (lint_command,)
