"""Each configuration key changes a running job, or is refused, or causes a warning."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Duration, TimestampAssigner, Types, WatermarkStrategy
from opchain.compiler.execution import restart_strategy, streaming_settings
from opchain.compiler.graph.plan import required
from opchain.compiler.ineffective_settings import ineffective_settings
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.flink_json import execution_plan
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.settings.job_settings import JobSettings
from opchain.compiler.settings.settings_reader import key_of, read_settings
from opchain.datastream import ProcessFunction, SlotSharingGroup, StreamExecutionEnvironment
from opchain.datastream.connectors import DataGeneratorSource
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opchain.compiler.graph.plan import Plan


def environment(**settings: Any) -> StreamExecutionEnvironment:
    """An environment of a job in this process, with settings by the names of fields."""
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    for name, value in settings.items():
        configuration.set_string(key_of(name), str(value))
    return StreamExecutionEnvironment.get_execution_environment(configuration)


class ValueAsTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class Seen(ProcessFunction[int, Any]):
    """Fails at its first attempt, if asked, and emits what a function sees of the settings."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    def open(self, runtime_context: Any) -> None:
        self.parameters = runtime_context.get_job_parameter("a", "none")
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        if self.fails and self.attempt == 0:
            raise ValueError("fails")
        import sys  # noqa: PLC0415 - sent with the function

        has_files = any(path.endswith("of_the_job") for path in sys.path)
        watermark = ctx.timer_service().current_watermark()
        yield value, watermark, self.parameters, self.attempt, has_files


def draw(env: StreamExecutionEnvironment, *, fails: bool = False) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueAsTime())
    numbers = env.from_sequence(1, 9).assign_timestamps_and_watermarks(strategy)
    seen = numbers.rebalance().map(lambda n: n + 1).set_max_parallelism(64)
    seen = seen.map(lambda n: n * 2).process(Seen(fails=fails))
    return seen.key_by(lambda row: row[0]).reduce(lambda a, b: a)


def observed(folder: Path, *, fails: bool = False, **settings: Any) -> Any:
    """What a run shows: its plan without the settings, its code, its results, its metrics and its files."""
    settings = {"batch_size": 2, **settings}
    env = environment(**settings)
    draw(env, fails=fails).print()
    plan = compile_program(env.program())
    planned = job_plan(plan).model_dump(mode="json", exclude={"settings"})
    sources = [vertex.source for vertex in required(plan.job_program).vertices]
    env = environment(**settings)
    try:
        results: Any = sorted(draw(env, fails=fails).execute_and_collect())
    except ValueError:
        if not fails:
            raise
        results = "failed"
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return json.dumps(planned), execution_plan(plan), sources, results, files


VALUES: dict[str, Any] = {
    "job_name": "other",
    "parallelism": 3,
    "max_parallelism": 77,
    "runtime_mode": "BATCH",
    "chaining_enabled": "false",
    "chain_different_max_parallelism": "false",
    "scheduler": "Default",
    "auto_parallelism": "false",
    "batch_shuffle_mode": "ALL_EXCHANGES_PIPELINED",
    "auto_generate_uids": "false",
    "vertex_name_index_prefix": "true",
    "vertex_description_mode": "CASCADING",
    "object_reuse": "true",
    "state_backend": "rocksdb",
    "restart_strategy": "fixed-delay",
    "trigger": "once",
    "generic_types": "false",
    "job_parameters": "a:b",
    "operators": "Map.parallelism:3",
    "rules_left_out": "inline_functions",
    "checkpoint_retention": "DELETE_ON_CANCELLATION",
    "openlineage_url": "nowhere",
    "prometheus_address": "nowhere",
    "spark_metrics": "true",
    "batch_size": 3,
    "auto_watermark_interval_ms": "0",
    "exponential_delay_jitter": 0.5,
}

OF_REPORTS = ("otlp_endpoint", "latency_interval_ms", "state_backend")
"""Settings that do not change results. tests/runtime/reporting and the tests of latency and RocksDB observe their effects."""


def value_of(name: str, folder: Path) -> Any:
    """A value other than the default."""
    if name in VALUES:
        return VALUES[name]
    field = JobSettings.model_fields[name]
    if field.annotation is bool:
        return str(not field.default).lower()
    if name.endswith("_ms"):
        return "77 s"
    if field.annotation in (int, float):
        return 7
    return folder / "of_the_job"


@pytest.mark.parametrize(
    "name", [name for name in JobSettings.model_fields if name not in ("target", *OF_REPORTS)]
)
def test_each_setting_has_an_effect_or_an_error_or_a_warning(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fails = name == "restart_strategy"
    before = observed(tmp_path, fails=fails)
    assert observed(tmp_path, fails=fails) == before
    with caplog.at_level(logging.WARNING, "opchain.job"):
        try:
            after = observed(tmp_path, fails=fails, **{name: value_of(name, tmp_path)})
        except (StreamError, ValueError, OSError):
            return
    assert after != before or key_of(name) in caplog.text


OF_RESTARTS = {
    "fixed_delay_attempts": "fixed-delay",
    "fixed_delay_ms": "fixed-delay",
    "failure_rate_attempts": "failure-rate",
    "failure_rate_interval_ms": "failure-rate",
    "failure_rate_delay_ms": "failure-rate",
    "exponential_delay_attempts": "exponential-delay",
    "exponential_delay_initial_ms": "exponential-delay",
    "exponential_delay_most_ms": "exponential-delay",
    "exponential_delay_multiplier": "exponential-delay",
    "exponential_delay_reset_ms": "exponential-delay",
    "exponential_delay_jitter": "exponential-delay",
}


@pytest.mark.parametrize("name", OF_RESTARTS)
def test_each_setting_of_a_restart_strategy_changes_it(name: str, tmp_path: Path) -> None:
    def strategy(**settings: Any) -> Any:
        env = environment(restart_strategy=OF_RESTARTS[name], **settings)
        return restart_strategy(read_settings(env.get_configuration()))

    assert strategy(**{name: value_of(name, tmp_path)}) != strategy()


def test_each_streaming_setting_is_set_by_a_configuration_key(tmp_path: Path) -> None:
    """tests/spark/streaming/test_checkpoint_settings.py and others observe the effects of StreamingSettings."""

    def settings_of(**settings: Any) -> Any:
        return streaming_settings(read_settings(environment(**settings).get_configuration()))

    default, changed = settings_of(), set()
    for name in JobSettings.model_fields:
        of_job = settings_of(**{name: value_of(name, tmp_path)} if name != "target" else {})
        changed |= {
            field.name
            for field in fields(default)
            if getattr(of_job, field.name) != getattr(default, field.name)
        }
    assert changed == {field.name for field in fields(default)}


def compiled(draw: Callable[[StreamExecutionEnvironment], object], **settings: Any) -> Plan:
    env = environment(**settings)
    draw(env)
    return compile_program(env.program())


def endless(env: StreamExecutionEnvironment) -> None:
    source: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(77))
    env.from_source(source, strategy, "numbers").print()


def bounded(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).key_by(lambda n: n).reduce(max).print()


@pytest.mark.parametrize(
    ("draw", "settings", "told"),
    [
        (bounded, {"scheduler": "Default"}, "jobmanager.scheduler = Default (only jobs in batch"),
        (bounded, {"scheduler": "Default", "runtime_mode": "BATCH"}, None),
        (
            bounded,
            {"batch_shuffle_mode": "ALL_EXCHANGES_PIPELINED", "runtime_mode": "BATCH"},
            "execution.batch-shuffle-mode = ALL_EXCHANGES_PIPELINED (it changes the plan, but",
        ),
        (
            bounded,
            {"auto_parallelism": "false", "scheduler": "Default", "runtime_mode": "BATCH"},
            "execution.batch.adaptive.auto-parallelism.enabled = False (jobmanager.scheduler is",
        ),
        (
            bounded,
            {"state_backend": "rocksdb", "runtime_mode": "BATCH"},
            "state.backend.type = rocksdb (in batch mode",
        ),
        (bounded, {"table_idle_timeout_ms": "77 s"}, "table.exec.source.idle-timeout = 77000 (the"),
        (endless, {"table_idle_timeout_ms": "77 s"}, None),
        (endless, {"metrics_interval_ms": "77 s"}, "opchain.metrics.interval = 77000 (nothing"),
        (endless, {"metrics_interval_ms": "77 s", "prometheus_textfile": "a"}, None),
        (bounded, {"auto_watermark_interval_ms": 77}, "pipeline.auto-watermark-interval = 77 (a"),
        (endless, {"auto_watermark_interval_ms": 77}, None),
        (bounded, {"auto_watermark_interval_ms": 0}, None),
        (bounded, {"buffer_timeout_ms": 77}, "execution.buffer-timeout.interval = 77 (only the"),
        (bounded, {"buffer_timeout_ms": 0}, None),
        (
            bounded,
            {"inline_functions": "false", "generate_code": "false"},
            "opchain.codegen.inline = False (opchain.codegen.enabled is false)",
        ),
        (endless, {"retained_checkpoints": 7}, "execution.checkpointing.num-retained = 7 (exec"),
        (endless, {"retained_checkpoints": 7, "checkpoint_dir": "a"}, None),
    ],
)
def test_a_setting_without_effect_on_the_job_causes_a_warning(
    draw: Callable[[StreamExecutionEnvironment], object], settings: Any, told: str | None
) -> None:
    found = ineffective_settings(compiled(draw, **settings))
    assert [text[: len(told or text)] for text in found] == ([] if told is None else [told])


def test_settings_of_chained_operators_without_effect_cause_a_warning() -> None:
    def chain(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 9).map(lambda n: n).set_parallelism(2).name("head")
        chained = numbers.map(lambda n: n).name("chained").set_parallelism(2)
        chained.set_max_parallelism(1).set_buffer_timeout(77).print().set_parallelism(2)

    limit, timeout = ineffective_settings(compiled(chain))
    assert limit.startswith("set_max_parallelism(1) of 'chained' (test_ineffective_settings.py:")
    assert limit.endswith("the max parallelism of 'head' applies, derived from its parallelism)")
    assert timeout.startswith("set_buffer_timeout(77) of 'chained' (test_ineffective_settings.py:")
    assert ineffective_settings(compiled(endless, max_parallelism=64)) == []


def test_resources_of_slots_cause_a_warning_in_process() -> None:
    def slots(env: StreamExecutionEnvironment) -> None:
        group = SlotSharingGroup.builder("a").set_cpu_cores(1.0).set_task_heap_memory_mb(1).build()
        env.register_slot_sharing_group(group)
        env.from_sequence(1, 9).map(str, Types.STRING()).slot_sharing_group("a").print()

    (told,) = ineffective_settings(compiled(slots))
    assert told == "the resources of slot sharing group 'a' (the job runs in this process)"
