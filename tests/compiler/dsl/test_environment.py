from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from opchain.common import Configuration
from opchain.compiler.interception import capturing
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError


def test_a_program_has_the_operators_and_the_settings(env: StreamExecutionEnvironment) -> None:
    env.configure(
        Configuration.from_dict({"pipeline.name": "words", "execution.runtime-mode": "batch"})
    )
    env.from_collection([1]).map(abs).print()
    program = env.program()
    assert program.transformations == tuple(env.get_transformations())
    assert program.next_id == 4
    assert (program.settings.job_name, program.settings.runtime_mode) == ("words", "BATCH")
    assert program.settings.parallelism == 4
    assert env.program("other").settings.job_name == "other"


def test_program_does_not_change_the_environment(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    assert env.program() == env.program()
    assert StreamExecutionEnvironment().program().transformations == ()


def test_an_environment_returns_its_plan_at_each_stage(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(abs).name("absolute").print()
    assert "absolute" in env.explain()
    assert "absolute" in env.explain("stream-graph")
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert any("absolute" in node["contents"] for node in nodes)
    with pytest.raises(ValueError, match="there is no stage 'nothing'"):
        env.explain("nothing")


def test_a_captured_job_does_not_run_and_the_program_continues(
    env: StreamExecutionEnvironment,
) -> None:
    with capturing() as capture:
        env.from_collection([1]).print()
        assert env.execute("first").get_net_runtime() == 0
        assert env.get_transformations() == []
        env.from_collection([2]).map(abs).print()
        assert env.execute_async("second").get_job_status().done()
    assert [(job.job_name, job.method) for job in capture.jobs] == [
        ("first", "execute"),
        ("second", "execute_async"),
    ]
    assert [len(job.program.transformations) for job in capture.jobs] == [1, 2]
    # The ids continue, as Flink's do.
    assert capture.jobs[1].program.transformations[0].id == 4


def test_capturing_records_new_environments() -> None:
    with capturing() as capture:
        made = StreamExecutionEnvironment()
    assert [env for env, _ in capture.environments] == [made]


def test_execute_refuses_an_empty_program(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        GraphError, match=r"execute\(\) \(test_environment.py:.*has added no operator;"
    ):
        env.execute()
    env.from_collection([1])
    with pytest.raises(GraphError, match=r"execute_async.*a source alone does nothing"):
        env.execute_async()


def test_execute_refuses_a_program_without_new_operators(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    with capturing():
        env.execute()
        with pytest.raises(GraphError, match=r"has added no operator since the last execute\(\)"):
            env.execute()


def test_a_job_name_is_a_string(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    name: Any = 5
    with pytest.raises(TypeError, match="the job's name is 5"):
        env.execute(name)
    assert len(env.get_transformations()) == 1


def test_an_environment_can_be_used_as_a_context_manager() -> None:
    with StreamExecutionEnvironment() as env:
        env.from_collection([1]).print()
    env.close()


def test_drawing_needs_neither_networkx_nor_pydantic_nor_pyspark() -> None:
    program = """
import sys
from opchain.datastream import *
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.common import Time, Types
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
stream = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
keyed = stream.key_by(lambda record: record[0])
keyed.window(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(max).print()
keyed.connect(keyed)
print(sorted({"networkx", "pydantic", "pyspark"} & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "[]"


def test_attributes_with_java_objects_in_pyflink_are_refused_by_name(
    env: StreamExecutionEnvironment,
) -> None:
    text = r"_j_stream_execution_environment belongs to a Java .* socket_text_stream\(\) reads a socket"
    with pytest.raises(AttributeError, match=text):
        _ = env._j_stream_execution_environment  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"DataStream\._j_data_stream belongs to a Java"):
        _ = env.from_collection([1])._j_data_stream  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = env.nothing  # type: ignore[attr-defined]
