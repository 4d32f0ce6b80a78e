"""Files on executors: every format is written and read, and a failed job leaves no visible file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from file_jobs import CASES, records_in, sink_of, source_builder, stream_of, write_numbers

from opchain.common import Configuration, Duration, Encoder
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import MalformedRecord, MalformedRecordError

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]
BAD: OutputTag[MalformedRecord] = OutputTag("bad")


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "spark")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(parallelism)


@pytest.mark.parametrize("name", CASES)
def test_files_of_one_job_are_read_in_order_by_another(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_numbers(environment(2), case, str(tmp_path), 300)
    assert [path.name[:8] for path in sorted(tmp_path.iterdir())] == ["out-0000", "out-0001"]
    found = records_in(environment(3), case, str(tmp_path))
    assert found == list(map(case.record, range(300)))


def test_malformed_records_are_counted_and_sent_to_a_side_output(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": "x"}\n{"id": 2}\n[\n{"id": 3}\n')
    env = environment(2)
    source = source_builder(CASES["json"].reads, str(tmp_path)).on_malformed(BAD).build()
    stream = stream_of(env, source)
    good = stream.map(lambda row: row["id"]).collect_async()
    bad = stream.get_side_output(BAD).map(lambda each: each.text).collect_async()
    result = env.execute()
    assert (list(good), sorted(bad)) == ([1, 2, 3], ["[", '{"id": "x"}'])
    assert result.metrics.operator("Source: files").registered["numRecordsInErrors"] == 2


@pytest.mark.parametrize("policy", ["skip", BAD, "fail"])
def test_unbounded_jobs_count_malformed_records_and_send_them_to_a_side_output(
    tmp_path: Path, policy: Any
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": "x"}\n{"id": 2}\n')
    env = environment(2)
    env.get_configuration().set_string("opchain.streaming.trigger", "available-now")
    builder = source_builder(CASES["json"].reads, str(tmp_path)).on_malformed(policy)
    stream = stream_of(env, builder.monitor_continuously(Duration.of_seconds(1)).build())
    good = stream.map(lambda row: row["id"]).collect_async()
    bad = stream.get_side_output(BAD).map(lambda each: each.text).collect_async()
    if policy == "fail":
        with pytest.raises(MalformedRecordError, match=r"a.json', byte 10: '.*' is malformed"):
            env.execute()
        return
    result = env.execute()
    assert list(good) == [1, 2]
    assert list(bad) == (['{"id": "x"}'] if policy is BAD else [])
    assert result.metrics.operator("Source: files").registered["numRecordsInErrors"] == 1


def test_the_error_gives_the_place_of_a_malformed_record(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": "x"}\n')
    env = environment(1)
    stream_of(env, source_builder(CASES["json"].reads, str(tmp_path)).build()).print()
    with pytest.raises(MalformedRecordError, match=r"byte 10: '.*' is malformed"):
        env.execute()


def test_a_failed_job_leaves_no_visible_file(tmp_path: Path) -> None:
    env = environment(2)
    stream = env.from_sequence(0, 99).map(lambda n: n if n < 90 else 1 // 0)
    stream.sink_to(sink_of(Encoder.simple_string_encoder(), str(tmp_path)))
    with pytest.raises(ZeroDivisionError):
        env.execute()
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["text", "parquet"])
def test_only_the_next_attempt_of_a_killed_task_is_visible(tmp_path: Path, name: str) -> None:
    case, was_killed = CASES[name], tmp_path / "was_killed"

    def dies_once(number: int) -> Any:
        if number == 250 and not was_killed.exists():
            was_killed.touch()
            os._exit(1)
        return case.record(number)

    env = environment(2)
    sink = sink_of(case.writes, str(tmp_path / "out"), part_size=100)
    env.from_sequence(0, 299).map(dies_once).sink_to(sink)
    env.execute()
    assert was_killed.exists()
    assert sorted(records_in(environment(2), case, str(tmp_path / "out")), key=str) == sorted(
        map(case.record, range(300)), key=str
    )
