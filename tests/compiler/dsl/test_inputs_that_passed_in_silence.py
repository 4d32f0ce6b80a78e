"""Common mistakes in programs: each is an error or a warning that names the operator and the line."""

from __future__ import annotations

import errno
import logging
import os
import re
from pathlib import Path
from typing import Any, cast

import pytest

from opchain.common import Configuration, Time, Types, WatermarkStrategy
from opchain.common.serialization import SimpleStringSchema
from opchain.compiler.graph.plan import JobGraphError
from opchain.datastream import (
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.formats.csv import CsvReaderFormat, CsvSchema
from opchain.datastream.functions import (
    AggregateFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
    SinkFunction,
)
from opchain.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.connectors.kafka.record import Deserializer
from opchain.runtime.errors import UnpicklableRecordError
from opchain.runtime.files.file_systems import file_system_of
from opchain.runtime.files.malformed import MalformedRecordError
from opchain.runtime.local import job as local_job
from opchain.runtime.windows.evictors import CountEvictor


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    for key, value in settings.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def as_text(value: Any) -> str:
    return f"{value}"


def parts(line: Any) -> Any:
    return line.split()


NAMES = {1: "one", 2: "two"}
SIZES = {1: [1], 2: [2]}


def titled(line: Any) -> str:
    return str(line)


@pytest.mark.parametrize(
    "function",
    [
        *(lambda line: line.upper(), lambda line: f"{line}!", str.strip, as_text, str),
        *(lambda x: "no", lambda x: NAMES[x], lambda x: titled(x) if x else str(x)),
        *(lambda x: "a" if x else "b", lambda x: x + "!", lambda x: "%s!" % x),  # noqa: UP031 - what is tested
    ],
)
def test_a_flat_map_that_returns_a_string_causes_a_warning(function: Any) -> None:
    lines = environment().from_collection(["ab"])
    with pytest.warns(
        UserWarning, match=r"flat_map\(\) \(test_.*\.py:\d+\): .* returns a text, and each"
    ):
        lines.flat_map(function)


@pytest.mark.parametrize(
    "function",
    [
        *(lambda line: [line.upper()], str.split, parts, lambda line: line, lambda x: SIZES[x]),
        *(lambda x: [x] + SIZES[x], lambda x: "a" if x else [x]),
    ],
)
def test_flat_maps_that_return_lists_or_unknown_values_cause_no_warning(function: Any) -> None:
    environment().from_collection(["ab"]).flat_map(function)  # a warning would be an error


def test_a_map_that_returns_a_generator_causes_a_warning_and_an_error() -> None:
    numbers = environment().from_collection([3])
    with pytest.warns(
        UserWarning,
        match=r"map\(\) \(test_.*\.py:\d+\): 'lambda' returns a generator, which becomes",
    ):
        spread = numbers.map(lambda number: (value for value in range(number))).name("spread")
    with pytest.raises(
        UnpicklableRecordError,
        match=r"'spread' \(test_.*\.py:\d+\), sending .* \(a generator: return a list instead, or use flat_map",
    ):
        collected(spread.rebalance().map(list).set_parallelism(2))
    with pytest.warns(UserWarning, match="returns a generator"):
        chained = environment().from_collection([3]).map(lambda number: (v for v in range(number)))
    assert collected(chained.map(list)) == [[0, 1, 2]], "in one task a generator can be read once"


@pytest.mark.parametrize(
    ("declared", "value", "said"),
    [
        (Types.INT(), 1 << 40, "does not fit into INT, which holds -2147483648 to 2147483647"),
        (Types.SHORT(), 40_000, "does not fit into SHORT"),
        (Types.BYTE(), 200, "does not fit into BYTE"),
        (Types.INT(), "x", "'x' is declared as INT, and is a str"),
    ],
)
def test_numbers_that_do_not_fit_their_declared_type_are_an_error(
    declared: Any, value: Any, said: str
) -> None:
    stream = environment().from_collection([0]).map(lambda _: value, declared)
    with pytest.raises((OverflowError, TypeError), match=said):
        collected(stream)


@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_max_parallelism_below_the_parallelism_names_the_operator(is_keyed: bool) -> None:
    env = environment()
    env.set_parallelism(4)
    numbers: Any = env.from_collection([1])
    numbers = numbers.key_by(lambda value: value) if is_keyed else numbers
    stream = numbers.map(lambda value: value).name("double").set_max_parallelism(2)
    with pytest.raises(
        JobGraphError,
        match=r"'double' \(test_.*\.py:\d+\) has parallelism 4 and max parallelism 2: .*set_max_parallelism\(4\)",
    ):
        collected(stream)


def test_an_aggregation_refuses_a_field_that_its_type_does_not_have() -> None:
    pairs = environment().from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0])
    with pytest.raises(ValueError, match=r"sum\(\) .* have no field 5; their fields are 0 to 1"):
        keyed.sum(5)
    keyed.sum(1)
    keyed.sum(-1)
    row = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    rows = environment().from_collection([("a", 1)], row).key_by(lambda each: each[0])
    with pytest.raises(
        ValueError, match="no field 'cuont'; their fields are 0 to 1, or word, count"
    ):
        rows.sum("cuont")


def test_a_window_aggregation_refuses_a_field_that_its_type_does_not_have() -> None:
    pairs = environment().from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    windows = pairs.key_by(lambda pair: pair[0]).count_window(2)
    with pytest.raises(ValueError, match=r"max\(\) .* have no field 2; their fields are 0 to 1"):
        windows.max(2)
    windows.max(1)


class Yields(
    MapFunction[Any, Any],
    FilterFunction[Any],
    ReduceFunction[Any],
    KeySelector[Any, Any],
    SinkFunction[Any],
    AggregateFunction[Any, Any, Any],
    CoMapFunction[Any, Any, Any],
):
    """Each method has a `yield` where a result is expected."""

    def map(self, value: Any) -> Any:
        yield value

    filter = get_key = map1 = map2 = create_accumulator = add = get_result = merge = map  # noqa: A003

    def reduce(self, value1: Any, value2: Any) -> Any:
        yield value1

    def invoke(self, value: Any, context: Any) -> None:  # type: ignore[misc]
        yield value


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda stream: stream.map(Yields()), "map"),
        (lambda stream: stream.filter(Yields()), "filter"),
        (lambda stream: stream.key_by(Yields()), "key_by"),
        (lambda stream: stream.key_by(str).reduce(Yields()), "reduce"),
        (lambda stream: stream.key_by(str).count_window(2).aggregate(Yields()), "aggregate"),
        (lambda stream: stream.connect(stream.map(str)).map(Yields()), "map"),
        (lambda stream: stream.add_sink(Yields()), "add_sink"),
        (lambda stream: stream.map(YieldsWhenCalled()), "map"),
    ],
)
def test_a_generator_is_refused_for_a_method_with_one_result(call: Any, said: str) -> None:
    with pytest.raises(
        TypeError,
        match=rf"^{said}\(\) \(test_inputs.*\.py:\d+\): 'Yields.*' is a generator function",
    ):
        call(environment().from_collection(["a"]))


class YieldsWhenCalled:
    def __call__(self, value: Any) -> Any:
        yield value


def test_a_field_that_a_record_does_not_have_is_named_in_the_error() -> None:
    pairs = environment().from_collection([("a", 1)]).key_by(lambda pair: pair[0])
    with pytest.raises(TypeError, match=r"\('a', 1\) has no field 5; it has 2, counted from 0"):
        collected(pairs.sum(5))


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("inlined", ["true", "false"])
@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda keyed: keyed.sum(5), "has no field 5"),
        (lambda keyed: keyed.min_by("x"), "has no field named 'x'"),
        (lambda keyed: keyed.count_window(1).max(5), "has no field 5"),
        (lambda keyed: keyed.count_window(1).evictor(CountEvictor.of(1)).max(5), "has no field 5"),
        (lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(1))).sum(5), "no field 5"),
        (lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).sum(5), "no field 5"),
    ],
)  # fmt: skip
def test_an_aggregation_of_a_missing_field_fails_at_the_first_record(
    result: Any, text: str, inlined: str, mode: RuntimeExecutionMode
) -> None:
    env = environment(**{"opchain.codegen.inline": inlined})
    env.set_runtime_mode(mode)
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        cast("Any", lambda pair, _: pair[1])
    )
    pairs = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(timed)
    with pytest.raises(TypeError, match=text) as raised:
        collected(result(pairs.map(lambda pair: pair).key_by(lambda pair: pair[0])))
    notes = " ".join(raised.value.__notes__)
    assert re.search(
        r"\(test_inputs_that_passed_in_silence\.py:\d+\), (at record \('a', 1\)|key 'a')", notes
    )


def test_many_tasks_in_one_process_cause_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_job, "MANY_TASKS", 10)
    env = environment()
    env.set_parallelism(11)
    with caplog.at_level(logging.WARNING, "opchain.local"):
        assert collected(env.from_sequence(1, 2).map(lambda value: value)) == [1, 2]
    assert "in this process, where a parallelism above 1 gives no speed-up" in caplog.text


def lines_of(path: Path, policy: Any = None, charset: str = "UTF-8") -> Any:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), str(path))
    if policy is not None:
        builder = builder.on_malformed(policy)
    return environment().from_source(builder.build(), WatermarkStrategy.no_watermarks(), "lines")


def test_text_that_is_not_utf_8_is_replaced_and_counted_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\n" + "Z\u00fcrich".encode("latin1") + b"\r\nthree\n\xff\n")
    lines = lines_of(path)
    lines.print()
    result = lines.get_execution_environment().execute()
    assert result.metrics.operator("Source: lines").registered["numRecordsInErrors"] == 2
    (warned,) = (record.getMessage() for record in caplog.records if "decoded" in record.message)
    assert re.match(
        r"'Source: lines' \(test_inputs.*:\d+\): '.*lines\.txt', byte 4: 'Z\ufffdrich' ", warned
    )
    path.write_bytes(path.read_bytes().removesuffix(b"\xff\n"))
    assert collected(lines_of(path)) == ["one", "Z\ufffdrich", "three"]
    assert collected(lines_of(path, "skip")) == ["one", "three"]
    tag = OutputTag("broken")
    source = lines_of(path, tag)
    (broken,) = collected(source.get_side_output(tag))
    assert (broken.place, broken.text) == ("byte 4", "Z\ufffdrich")
    assert "not UTF-8" in broken.reason


@pytest.mark.parametrize("charset", ["UTF-16", "UTF-16LE", "UTF-32"])
def test_bytes_that_are_not_utf_16_or_32_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, charset: str
) -> None:
    path = tmp_path / "lines.txt"
    good = "one\r\n\ufffd is a character\nZ|rich\nfour"
    data = good.encode(charset.lower())
    wide = "|".encode(charset.lower().removesuffix("le") + "-le")
    path.write_bytes(data.replace(wide, b"\x00\xdc\x00\x00"[: len(wide)]))
    lines = lines_of(path, charset=charset)
    lines.print()
    result = lines.get_execution_environment().execute()
    assert result.metrics.operator("Source: lines").registered["numRecordsInErrors"] == 1
    (warned,) = (record.getMessage() for record in caplog.records if "decoded" in record.message)
    assert "lines.txt', line 3: 'Z\ufffdrich' " in warned
    rest = ["one", "\ufffd is a character"]
    assert collected(lines_of(path, charset=charset)) == [*rest, "Z\ufffdrich", "four"]
    assert collected(lines_of(path, "skip", charset)) == [*rest, "four"]
    tag = OutputTag("broken")
    (broken,) = collected(lines_of(path, tag, charset).get_side_output(tag))
    assert (broken.place, broken.text) == ("line 3", "Z\ufffdrich")
    assert broken.reason == f"it is not {charset}"


@pytest.mark.parametrize("reads_whole_files", [True, False])
def test_rows_of_csv_that_are_not_utf_8_are_malformed(
    tmp_path: Path, reads_whole_files: bool
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"one,1\n" + "Z\u00fcrich,2\n".encode("latin1") + "M\u00fcnchen,3\n".encode())
    schema = CsvSchema.builder().add_string_column("word").add_number_column("n").build()
    reads = CsvReaderFormat.for_schema(schema)
    reads = reads if reads_whole_files else reads.one_record_per_line()

    def rows(policy: Any) -> Any:
        builder = FileSource.for_record_stream_format(reads, str(path)).on_malformed(policy)
        return environment().from_source(builder.build(), WatermarkStrategy.no_watermarks(), "rows")

    with pytest.raises(
        MalformedRecordError, match=r"Z\ufffdrich,2' is malformed \(it is not UTF-8\)"
    ):
        collected(rows("fail"))
    assert [row["n"] for row in collected(rows("skip"))] == [1, 3]
    tag = OutputTag("broken")
    (broken,) = collected(rows(tag).get_side_output(tag))
    assert broken.text == "Z\ufffdrich,2"


class Message:
    """Of a Kafka client, at offset 7 of a partition."""

    def __init__(self, value: bytes) -> None:
        self.value = lambda: value
        self.topic, self.partition, self.offset = (lambda: "t"), (lambda: 0), (lambda: 7)
        self.timestamp, self.key = (lambda: (1, 5)), (lambda: None)


class Counted:
    """The context of a reader; counts what is malformed."""

    def __init__(self) -> None:
        self.errors: list[int] = []
        self.metric_group = lambda: self
        self.counter = lambda _: self
        self.inc = self.errors.append
        self.warnings: list[str] = []
        self.warn = self.warnings.append


def test_messages_of_kafka_that_are_not_utf_8_are_counted_or_malformed() -> None:
    messages = [Message(b"one"), Message("Z\u00fcrich".encode("latin1")), Message(b"three")]
    context: Any = Counted()
    reads: Any = Deserializer(SimpleStringSchema(), context=context)
    assert list(reads(messages)[0]) == ["one", "Z\ufffdrich", "three"]
    assert context.errors == [1]
    assert context.warnings[0].startswith(
        "topic t, partition 0, offset 7: 'Z\ufffdrich' has bytes that"
    )
    skips: Any = Deserializer(SimpleStringSchema(), "skip", context)
    assert list(skips(messages)[0]) == ["one", "three"]
    assert context.errors == [1, 1]


def test_a_setting_that_is_not_a_duration_is_an_error_of_one_sentence() -> None:
    with pytest.raises(ValueError, match="'soon' is not a duration: expected") as raised:
        environment(**{"execution.checkpointing.interval": "soon"})
    assert str(raised.value).count("not a duration") == 1


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("parallelism.default", "many", "'many' is not a whole number"),
        ("execution.runtime-mode", "FAST", "'FAST' is not one of STREAMING, BATCH, AUTOMATIC"),
        ("state.backend.type", "rockdb", "'rockdb': no such value. .* `rocksdb` on the disks"),
    ],
)
def test_an_invalid_setting_is_an_error_that_lists_valid_values(
    key: str, value: str, said: str
) -> None:
    with pytest.raises(ValueError, match=f"configuration key '{key}'.*{said}") as raised:
        environment(**{key: value})
    assert str(raised.value).count(" is not ") <= 1


def is_full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "part"
    stream = file_system_of(str(path)).create(str(path))
    with Path("/dev/full").open("wb") as full:
        os.dup2(full.fileno(), stream.fileno())
        stream.write(b"x" * 10)
        with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
            stream.flush()
        stream.raw.close()  # type: ignore[attr-defined]
    storage = checkpoint_storage(str(tmp_path / "job"))
    monkeypatch.setattr("os.fsync", is_full)
    with pytest.raises(OSError, match=r"No space left on device: '.*job/chk-1/_metadata'"):
        storage.publish("chk-1/_metadata", b"x")


def in_a_loop(number: int) -> Any:
    for _ in range(2):
        number += 1
    return "ab" if number % 2 else []


OTHER = {0: [], 1: "one", 2: "two"}
BY_NUMBER: Any = OTHER.get


class Unseen(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any) -> Any:
        return BY_NUMBER(value, "")


@pytest.mark.parametrize("generates", ["true", "false"])
@pytest.mark.parametrize(
    ("function", "example"),
    [
        (in_a_loop, "'ab'"),
        (lambda number: OTHER[number % 3], "'one'"),
        (BY_NUMBER, "'one'"),
        (Unseen(), "'one'"),
    ],
)
def test_a_flat_map_that_returns_strings_at_run_time_warns_once(
    function: Any, example: str, generates: str, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(**{"opchain.codegen.enabled": generates})
    numbers = env.from_collection([0, 0, 1, 2]).rebalance()
    records = collected(numbers.flat_map(function).name("spread").set_parallelism(2))
    assert "".join(sorted(records)) in ("ab", "enootw")
    (warning,) = [text for text in caplog.messages if "text" in text]
    assert warning.startswith("'spread' (test_inputs_that_passed_in_silence.py:")
    assert f"{example} is a text that its function returned, and each" in warning


@pytest.mark.parametrize(
    ("function", "given"),
    [(lambda number: SIZES[number], 1), (str.split, "a b"), (lambda text: text.split(), "a b")],
)
def test_a_flat_map_that_returns_lists_at_run_time_causes_no_warning(
    function: Any, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    collected(environment().from_collection([given, given]).flat_map(function))
    assert caplog.messages == []


class Periodic(KeyedProcessFunction[Any, Any, Any]):
    """Registers the next timer when a timer fires."""

    def __init__(self, domain: str) -> None:
        self.domain = domain

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        getattr(ctx.timer_service(), f"register_{self.domain}_time_timer")(5)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[Any]) -> Any:
        getattr(ctx.timer_service(), f"register_{self.domain}_time_timer")(timestamp + 1000)
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("generates", ["true", "false"])
@pytest.mark.parametrize("domain", ["event", "processing"])
def test_timers_registered_by_timers_cause_a_warning_in_batch_mode(
    domain: str, generates: str, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(**{"opchain.codegen.enabled": generates})
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed = env.from_collection([1, 2, 2]).key_by(lambda number: number)
    assert sorted(collected(keyed.process(Periodic(domain)).name("late"))) == [(1, 5), (2, 5)]
    (warning,) = [text for text in caplog.messages if "timer" in text]
    assert warning.startswith("'late' (test_inputs_that_passed_in_silence.py:")
    assert "a timer registered another timer, for 1005, and batch mode does not fire it" in warning
