"""Each rule of `opchain lint`: a program that breaks it, and the nearest one that does not."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain import StreamExecutionEnvironment
from opchain.common import Duration, Time, Types, WatermarkStrategy
from opchain.compiler.commands.lint import LINT_RULES, findings_sarif, lint
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import AggregateFunction, KeyedProcessFunction, MapFunction
from opchain.datastream.state import StateTtlConfig, ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from opchain.datastream.functions import RuntimeContext


def found(env: Any, *ignore: str) -> list[tuple[str, str]]:
    findings = lint(compile_program(env.program(), "stream-graph"), ignore)
    return [(each.rule, each.text) for each in findings]


def rules(env: Any, *ignore: str) -> list[str]:
    return [rule for rule, _ in found(env, *ignore)]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment()
    made.set_parallelism(2)
    return made


def unbounded(env: Any) -> Any:
    source = SparkSource("rate", is_streaming=True)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "rate").uid("rate")


class Last(KeyedProcessFunction):
    """Keeps the last value of each key, forever."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value, self.last.value()
        self.last.update(value)


class LastOfADay(Last):
    """The same, with state that expires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.last = runtime_context.get_state(descriptor)


def test_lint_finds_state_without_a_uid_in_an_unbounded_job(env: Any) -> None:
    keyed = unbounded(env).key_by(lambda row: row[1])
    keyed.process(LastOfADay()).name("last").print()
    ((rule, text),) = found(env)
    assert rule == "stateful-without-uid"
    assert text.startswith("'last' (test_lint.py:")


def test_lint_accepts_state_with_a_uid_and_state_of_a_bounded_job(env: Any) -> None:
    keyed = unbounded(env).key_by(lambda row: row[1])
    keyed.process(LastOfADay()).uid("last").print()
    assert rules(env) == []
    env = StreamExecutionEnvironment()
    env.from_sequence(1, 9).key_by(lambda value: value).process(Last()).print()
    assert rules(env) == []


def windowed(env: Any, strategy: WatermarkStrategy[Any]) -> None:
    numbers = env.from_sequence(1, 9).assign_timestamps_and_watermarks(strategy)
    keyed = numbers.key_by(lambda value: value % 2)
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(max).print()


def test_lint_finds_an_event_time_window_without_timestamps(env: Any) -> None:
    windowed(env, WatermarkStrategy.no_watermarks())
    ((rule, text),) = found(env)
    assert rule == "no-watermarks"
    assert text.endswith("the job fails at the first record, because records have no timestamps")


def test_lint_finds_an_event_time_window_without_watermarks(env: Any) -> None:
    strategy = WatermarkStrategy.no_watermarks()
    windowed(env, strategy.with_timestamp_assigner(lambda value, _: value))
    ((_, text),) = found(env)
    assert text.endswith("it fires only when the input ends")


def test_lint_accepts_a_window_after_a_watermark_strategy(env: Any) -> None:
    windowed(env, WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)))
    assert rules(env) == []


def test_lint_finds_a_second_key_by_with_the_same_key(env: Any) -> None:
    def key(value: int) -> int:
        return value % 3

    sums = env.from_sequence(1, 9).key_by(key).reduce(max)
    sums.key_by(key).reduce(min).print()
    assert rules(env) == ["same-key-again"]
    sums.key_by(lambda value: value % 4).reduce(min).print()
    assert rules(env) == ["same-key-again"]


def test_lint_finds_a_rebalance_between_equal_parallelisms(env: Any) -> None:
    env.from_sequence(1, 9).map(abs).rebalance().map(str).print()
    assert rules(env) == ["needless-rebalance"]


def test_lint_accepts_a_rebalance_to_another_parallelism(env: Any) -> None:
    env.from_sequence(1, 9).map(abs).rebalance().map(str).set_parallelism(3).print()
    assert rules(env) == []


def test_lint_finds_a_max_parallelism_without_room_to_scale(env: Any) -> None:
    reduced = env.from_sequence(1, 9).key_by(lambda value: value).reduce(max)
    reduced.set_max_parallelism(3).print()
    assert rules(env) == ["low-max-parallelism"]


def test_lint_finds_state_that_is_never_cleared(env: Any) -> None:
    keyed = unbounded(env).key_by(lambda row: row[1])
    keyed.process(Last()).uid("last").print()
    assert rules(env) == ["unbounded-state"]


def draw_lots(value: int) -> tuple[int, float]:
    return value, random.random()


class Stamped(MapFunction):
    def map(self, value: Any) -> Any:
        return value, dt.datetime.now(tz=dt.timezone.utc)


def imports_inside(value: Any) -> Any:
    import uuid  # noqa: PLC0415

    return value, uuid.uuid4()


@pytest.mark.parametrize(
    ("function", "called"),
    [
        (draw_lots, "random"),
        (Stamped(), "now"),
        (imports_inside, "uuid4"),
        (lambda value: [time.time() for _ in range(value)], "time"),
    ],
)
def test_lint_finds_functions_with_random_or_time_dependent_results(
    env: Any, function: Any, called: str
) -> None:
    env.from_sequence(1, 9).map(function).print()
    ((rule, text),) = found(env)
    assert rule == "not-deterministic"
    assert f"{called}()" in text


def waits(value: Any) -> Any:
    time.sleep(0)
    return value


def test_lint_accepts_deterministic_uses_of_random_and_time_modules(env: Any) -> None:
    env.from_sequence(1, 9).map(waits).map(dt.timedelta).print()
    assert rules(env) == []


class Inserts(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.connection = sqlite3.connect(":memory:")

    def map(self, value: Any) -> Any:
        self.connection.execute("INSERT INTO t VALUES (?)", (value,))
        return value


def test_lint_finds_a_database_connection_in_a_function(env: Any) -> None:
    env.from_sequence(1, 9).map(Inserts()).print()
    ((rule, text),) = found(env)
    assert rule == "sink-in-function"
    assert text.startswith("'Inserts.open' of 'Map' (test_lint.py:")


def test_lint_can_ignore_a_rule_and_refuses_unknown_rules(env: Any) -> None:
    env.from_sequence(1, 9).map(draw_lots).print()
    assert rules(env, "not-deterministic") == []
    with pytest.raises(ValueError, match="there is no rule 'random'; the rules are stateful"):
        rules(env, "random")


def test_every_lint_rule_has_a_test() -> None:
    names = {rule.name for rule in LINT_RULES}
    text = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if f'"{name}"' in text} == names


def test_sarif_output_names_rule_file_and_line(env: Any) -> None:
    import json  # noqa: PLC0415

    env.from_sequence(1, 9).map(draw_lots).print()
    findings = lint(compile_program(env.program(), "stream-graph"))
    (run,) = json.loads(findings_sarif(findings, "1.0"))["runs"]
    (result,) = run["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == __file__
    assert location["region"]["startLine"] > 1
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}


class Average(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> Any:
        accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        raise NotImplementedError


class Sum(Average):
    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + value[1]


def test_lint_finds_functions_without_a_return(env: StreamExecutionEnvironment) -> None:
    pairs = env.from_collection([("a", 1)]).key_by(lambda pair: pair[0])

    def forgets(one: Any, _: Any) -> Any:
        one[0]

    pairs.count_window(2).aggregate(Average()).name("average")
    pairs.count_window(2).aggregate(Sum())
    pairs.reduce(forgets).name("forgets")
    pairs.reduce(lambda one, _: one)
    pairs.filter(lambda pair: pair[0])
    pairs.map(print)
    told = [text.partition(" (")[0] for rule, text in found(env) if rule == "no-result"]
    assert told == [
        "'Average.add' of 'average'",
        "'test_lint_finds_functions_without_a_return.<locals>.forgets' of 'forgets'",
    ]


def test_lint_accepts_window_all_with_parallelism_1(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).count_window_all(2).reduce(lambda one, _: one)
    assert rules(env) == []
