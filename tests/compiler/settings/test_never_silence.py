"""Every setting has an effect, or is refused, or causes a warning when a job starts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Duration, ExecutionConfig, Types
from opchain.common.restart_strategy import RestartStrategies
from opchain.common.serialization import Encoder, SimpleStringSchema
from opchain.compiler.ineffective_settings import declared_options
from opchain.compiler.settings.settings_reader import flink_keys, known_keys
from opchain.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from opchain.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcSource,
)
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from opchain.datastream.formats.csv import (
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from opchain.datastream.formats.json import (
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from opchain.datastream.state import StateTtlConfig
from opchain.datastream.state_backend import EmbeddedRocksDBStateBackend
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.graph.plan import Program


def other_value(option: Any) -> str:
    """A value that is not the default."""
    kind, default = option.value_type.name, option.default
    if kind == "boolean":
        return str(not default).lower()
    if kind == "duration":
        return "77 s"
    if kind in ("int", "long"):
        return "7"
    if hasattr(default, "name"):
        return next(item.name for item in type(default) if item is not default)
    return "something"


@pytest.mark.parametrize(
    "key", sorted(key for key in declared_options() if key not in known_keys())
)
def test_each_option_without_effect_causes_a_warning(key: str) -> None:
    configuration = Configuration()
    configuration.set_string(key, other_value(declared_options()[key]))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    (told,) = env.program().unused_keys
    assert told.startswith(f"{key} (")
    assert "no counterpart" not in told


def test_unknown_keys_of_flink_cause_a_warning_but_keys_of_the_program_do_not() -> None:
    configuration = Configuration()
    for key in (
        "taskmanager.numberOfTaskSlots",
        "s3.access-key",
        "state.latency-track.history-size",
        "shop.currency",
    ):
        configuration.set_string(key, "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    assert [told.split(" ")[0] for told in env.program().unused_keys] == [
        "s3.access-key",
        "state.latency-track.history-size",
        "taskmanager.numberOfTaskSlots",
    ]


def test_every_key_of_flink_has_an_effect_or_causes_a_warning() -> None:
    silent = []
    for key in sorted(flink_keys() - known_keys() - set(declared_options())):
        configuration = Configuration()
        configuration.set_string(key, "1")
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        if not [told for told in env.program().unused_keys if told.startswith(f"{key} (")]:
            silent.append(key)
    assert silent == []


@pytest.mark.parametrize(
    ("key", "value", "choice", "chosen"),
    [
        ("restart-strategy.fixed-delay.attempts", "5", "restart-strategy.type", "fixed-delay"),
        ("restart-strategy.failure-rate.delay", "5 s", "restart-strategy.type", "failurerate"),
        (
            "restart-strategy.exponential-delay.max-backoff",
            "5 s",
            "restart-strategy.type",
            "exponential-delay",
        ),
        ("state.backend.rocksdb.localdir", "/disks", "state.backend.type", "rocksdb"),
        ("opchain.openlineage.namespace", "shop", "opchain.openlineage.url", "http://marquez"),
    ],
)
def test_a_setting_of_an_option_that_is_not_chosen_causes_a_warning(
    key: str, value: str, choice: str, chosen: str
) -> None:
    configuration = Configuration()
    configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    (told,) = env.program().unused_keys
    assert told.startswith(f"{key} ({choice} is ")
    env.get_configuration().set_string(choice, chosen)
    assert env.program().unused_keys == ()


def test_a_job_warns_of_settings_without_effect(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_configuration().set_string("execution.target", "local")
    env.get_config().disable_closure_cleaner()
    env.enable_checkpointing(1000)
    env.from_collection([1]).print()
    with caplog.at_level(logging.WARNING, "opchain.job"):
        env.execute("told")
    (told,) = caplog.messages
    assert (
        "pipeline.closure-cleaner-level (Python functions are pickled without a closure cleaner)"
        in told
    )
    assert "execution.checkpointing.interval = 1000 (the job is bounded" in told


def test_a_job_in_process_warns_of_settings_that_only_spark_uses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_configuration().set_string("execution.target", "local")
    env.set_python_executable("/somewhere/python")
    env.add_jars("file:///somewhere/a.jar")
    env.from_collection([1]).print()
    with caplog.at_level(logging.WARNING, "opchain.job"):
        env.execute("told")
    (told,) = caplog.messages
    assert "python.executable = /somewhere/python (the job runs in this process" in told
    assert "pipeline.jars = file:///somewhere/a.jar (the job runs in this process" in told


# Each setter, with arguments that differ from the default. None: the setter restores a default, or has its own tests.
SETTERS: dict[str, Callable[[Any], Any] | None] = {
    "env.register_collect_iterator": None,
    "env.add_epoch_listener": lambda env: env.add_epoch_listener(print),
    "env.add_python_file": lambda env: env.add_python_file("/somewhere/a.py"),
    "env.set_python_requirements": lambda env: env.set_python_requirements("/somewhere/a.txt"),
    "env.add_python_archive": lambda env: env.add_python_archive("/somewhere/a.zip"),
    "env.set_python_executable": lambda env: env.set_python_executable("python3.11"),
    "env.add_jars": lambda env: env.add_jars("file:///somewhere/a.jar"),
    "env.add_classpaths": lambda env: env.add_classpaths("file:///somewhere/a.jar"),
    "env.register_cached_file": lambda env: env.register_cached_file("/somewhere/a", "a"),
    "env.set_parallelism": lambda env: env.set_parallelism(7),
    "env.set_max_parallelism": lambda env: env.set_max_parallelism(7),
    "env.set_default_local_parallelism": None,
    "env.set_runtime_mode": lambda env: env.set_runtime_mode(RuntimeExecutionMode.BATCH),
    "env.set_buffer_timeout": lambda env: env.set_buffer_timeout(7),
    "env.register_slot_sharing_group": lambda env: env.register_slot_sharing_group(
        SlotSharingGroup.builder("a").set_cpu_cores(1.0).set_task_heap_memory_mb(1).build()
    ),
    "env.enable_checkpointing": lambda env: env.enable_checkpointing(777),
    "env.set_state_backend": lambda env: env.set_state_backend(EmbeddedRocksDBStateBackend()),
    "env.enable_changelog_state_backend": lambda env: env.enable_changelog_state_backend(True),
    "env.set_default_savepoint_directory": lambda env: env.set_default_savepoint_directory(
        "/somewhere/a"
    ),
    "env.set_restart_strategy": lambda env: env.set_restart_strategy(
        RestartStrategies.fixed_delay_restart(3, 10)
    ),
    "env.set_stream_time_characteristic": None,
    "env.add_default_kryo_serializer": None,
    "env.register_type_with_kryo_serializer": None,
    "env.register_type": None,
    "env.add_source": None,
    "env.add_operator": None,
    "config.enable_closure_cleaner": None,
    "config.disable_closure_cleaner": lambda config: config.disable_closure_cleaner(),
    "config.set_auto_watermark_interval": lambda config: config.set_auto_watermark_interval(7),
    "config.set_latency_tracking_interval": lambda config: config.set_latency_tracking_interval(7),
    "config.set_parallelism": lambda config: config.set_parallelism(7),
    "config.set_max_parallelism": lambda config: config.set_max_parallelism(7),
    "config.set_task_cancellation_interval": lambda c: c.set_task_cancellation_interval(7),
    "config.set_task_cancellation_timeout": lambda c: c.set_task_cancellation_timeout(7),
    "config.enable_force_kryo": lambda config: config.enable_force_kryo(),
    "config.disable_force_kryo": None,
    "config.enable_generic_types": None,
    "config.disable_generic_types": lambda config: config.disable_generic_types(),
    "config.enable_auto_generated_uids": None,
    "config.disable_auto_generated_uids": lambda config: config.disable_auto_generated_uids(),
    "config.enable_force_avro": lambda config: config.enable_force_avro(),
    "config.disable_force_avro": None,
    "config.enable_object_reuse": lambda config: config.enable_object_reuse(),
    "config.disable_object_reuse": None,
    "config.set_global_job_parameters": lambda c: c.set_global_job_parameters({"a": "b"}),
    "config.set_use_snapshot_compression": lambda c: c.set_use_snapshot_compression(True),
    "config.set_restart_strategy": lambda config: config.set_restart_strategy(
        RestartStrategies.fixed_delay_restart(3, 10)
    ),
    "config.set_execution_mode": None,
    "config.set_default_input_dependency_constraint": None,
    "config.add_default_kryo_serializer": None,
    "config.register_type_with_kryo_serializer": None,
    "config.register_pojo_type": None,
    "config.register_kryo_type": None,
    "config.disable_auto_type_registration": None,
    "checkpoints.disable_checkpointing": None,
    "checkpoints.set_checkpointing_mode": lambda checkpoints: checkpoints.set_checkpointing_mode(
        CheckpointingMode.AT_LEAST_ONCE
    ),
    "checkpoints.set_checkpoint_interval": lambda c: c.set_checkpoint_interval(777),
    "checkpoints.set_checkpoint_timeout": lambda c: c.set_checkpoint_timeout(777),
    "checkpoints.set_min_pause_between_checkpoints": lambda c: c.set_min_pause_between_checkpoints(
        777
    ),
    "checkpoints.set_max_concurrent_checkpoints": lambda c: c.set_max_concurrent_checkpoints(7),
    "checkpoints.set_fail_on_checkpointing_errors": lambda c: c.set_fail_on_checkpointing_errors(
        False
    ),
    "checkpoints.set_tolerable_checkpoint_failure_number": lambda c: (
        c.set_tolerable_checkpoint_failure_number(7)
    ),
    "checkpoints.set_externalized_checkpoint_retention": lambda c: (
        c.set_externalized_checkpoint_retention(
            ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
        )
    ),
    "checkpoints.enable_unaligned_checkpoints": lambda c: c.enable_unaligned_checkpoints(),
    "checkpoints.disable_unaligned_checkpoints": None,
    "checkpoints.set_aligned_checkpoint_timeout": lambda c: c.set_aligned_checkpoint_timeout(777),
    "checkpoints.set_alignment_timeout": lambda c: c.set_alignment_timeout(777),
    "checkpoints.set_force_unaligned_checkpoints": lambda c: c.set_force_unaligned_checkpoints(),
    "checkpoints.enable_externalized_checkpoints": None,
    "checkpoints.set_externalized_checkpoint_cleanup": None,
    "checkpoints.set_checkpoint_storage": None,
    "checkpoints.set_checkpoint_storage_dir": lambda c: c.set_checkpoint_storage_dir(
        "file:///somewhere/a"
    ),
}

CLASSES = {
    "env": StreamExecutionEnvironment,
    "config": ExecutionConfig,
    "checkpoints": CheckpointConfig,
}


def test_every_setter_has_a_test_case() -> None:
    begins = ("set_", "enable_", "disable_", "add_", "register_")
    found = {
        f"{name}.{method}"
        for name, of in CLASSES.items()
        for method in dir(of)
        if method.startswith(begins)
    }
    listed = set(SETTERS) | {"env.disable_operator_chaining"}
    assert sorted(found - listed) == []


def told(program: Program) -> Any:
    return (
        program.settings,
        program.unused_keys,
        program.cached_files,
        sorted(program.slot_group_resources),
        len(program.epoch_listeners),
    )


@pytest.mark.parametrize("setter", [name for name, call in SETTERS.items() if call is not None])
def test_each_setter_has_an_effect_or_an_error_or_a_warning(
    setter: str, recwarn: pytest.WarningsRecorder
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    before = told(env.program())
    call = SETTERS[setter]
    assert call is not None
    of = {
        "env": env,
        "config": env.get_config(),
        "checkpoints": env.get_checkpoint_config(),
    }[setter.split(".", maxsplit=1)[0]]
    try:
        call(of)
    except StreamError:
        return
    assert told(env.program()) != before or len(recwarn)


ROW: Any = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.LIST(Types.STRING())])
CONNECTION = JdbcConnectionOptions("jdbc:postgresql://a/a")


def serializer(topic: str) -> Any:
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )


BUILDERS: dict[str, Callable[[], Any]] = {
    "file_sink": lambda: FileSink.for_row_format(
        "/somewhere", Encoder.simple_string_encoder()
    ).with_output_file_config(OutputFileConfig("part", "")),
    "file_source": lambda: FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), "/somewhere"
    ).monitor_continuously(Duration.of_seconds(1)),
    "kafka_source": lambda: (
        KafkaSource.builder()
        .set_bootstrap_servers("a:1")
        .set_partitions({KafkaTopicPartition("a", 0)})
        .set_value_only_deserializer(SimpleStringSchema())
    ),
    "ttl": lambda: StateTtlConfig.new_builder(10),
    "jdbc": JdbcExecutionOptions.builder,
    "jdbc_connection": lambda: JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(
        "jdbc:postgresql://a/a"
    ),
    "jdbc_source": lambda: (
        JdbcSource.builder().set_sql("SELECT 1").set_connection_options(CONNECTION)
    ),
    "kafka_sink": lambda: (
        KafkaSink.builder().set_bootstrap_servers("a:1").set_record_serializer(serializer("a"))
    ),
    "kafka_serializer": lambda: (
        KafkaRecordSerializationSchema.builder()
        .set_topic("a")
        .set_value_serialization_schema(SimpleStringSchema())
    ),
    "csv_schema": lambda: CsvSchema.builder().add_array_column("a", "+").add_array_column("z", ""),
    "csv_reader": lambda: CsvRowDeserializationSchema.Builder(ROW),
    "csv_writer": lambda: CsvRowSerializationSchema.Builder(ROW),
    "json_reader": lambda: JsonRowDeserializationSchema.builder().type_info(ROW),
    "json_writer": lambda: JsonRowSerializationSchema.builder().with_type_info(ROW),
    "output_file": OutputFileConfig.builder,
    "compaction": lambda: FileCompactStrategy.builder().enable_compaction_on_checkpoint(1),
}

# Each setter of a builder, with arguments that differ from the default. None: the setter restores a default, or needs
# another setter.
BUILDER_SETTERS: dict[str, tuple[Any, ...] | None] = {
    "file_sink.with_bucket_check_interval": (7,),
    "file_sink.with_bucket_assigner": (BucketAssigner.base_path_bucket_assigner(),),
    "file_sink.with_output_file_config": (OutputFileConfig("a", "b"),),
    "file_sink.with_rolling_policy": (RollingPolicy.default_rolling_policy(part_size=7),),
    "file_sink.with_success_file": ("_SUCCESS",),
    "file_sink.enable_compact": (
        FileCompactStrategy.builder().set_size_threshold(7).build(),
        FileCompactor.concat_file_compactor(b"b"),
    ),
    "file_sink.disable_compact": None,
    "file_source.set_file_enumerator": (
        FileEnumeratorProvider.default_non_splittable_file_enumerator(),
    ),
    "file_source.set_split_assigner": (FileSplitAssignerProvider.locality_aware_split_assigner(),),
    "file_source.on_malformed": ("skip",),
    "file_source.monitor_continuously": (Duration.of_seconds(7),),
    "file_source.process_static_file_set": (),
    "file_source.set_max_bytes_per_epoch": (7,),
    "file_source.set_max_files_per_epoch": (7,),
    "file_source.set_max_time_per_epoch": (Duration.of_seconds(7),),
    "kafka_source.set_bootstrap_servers": ("b:2",),
    "kafka_source.on_malformed": ("skip",),
    "kafka_source.set_bounded": (KafkaOffsetsInitializer.latest(),),
    "kafka_source.set_unbounded": (KafkaOffsetsInitializer.latest(),),
    "kafka_source.set_client_id_prefix": ("b",),
    "kafka_source.set_deserializer": None,
    "kafka_source.set_value_only_deserializer": None,
    "kafka_source.set_group_id": ("b",),
    "kafka_source.set_max_bytes_per_epoch": (7,),
    "kafka_source.set_max_records_per_epoch": (7,),
    "kafka_source.set_max_time_per_epoch": (Duration.of_seconds(7),),
    "kafka_source.set_partitions": ({KafkaTopicPartition("b", 0)},),
    "kafka_source.set_topic_pattern": ("a.*",),
    "kafka_source.set_topics": ("a", "b"),
    "kafka_source.set_properties": ({"client.id": "b"},),
    "kafka_source.set_property": ("client.id", "b"),
    "kafka_source.set_starting_offsets": (KafkaOffsetsInitializer.latest(),),
    "ttl.set_ttl": (7,),
    "ttl.set_update_type": (StateTtlConfig.UpdateType.OnReadAndWrite,),
    "ttl.set_state_visibility": (StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,),
    "ttl.set_ttl_time_characteristic": None,
    "ttl.use_processing_time": None,
    "ttl.never_return_expired": None,
    "ttl.return_expired_if_not_cleaned_up": (),
    "ttl.update_ttl_on_create_and_write": None,
    "ttl.update_ttl_on_read_and_write": (),
    "ttl.cleanup_full_snapshot": (),
    "ttl.cleanup_incrementally": (7, True),
    "ttl.cleanup_in_rocksdb_compact_filter": (7,),
    "ttl.disable_cleanup_in_background": (),
    "jdbc.with_batch_size": (7,),
    "jdbc.with_batch_interval_ms": (7,),
    "jdbc.with_max_retries": (7,),
    "jdbc_connection.with_url": ("jdbc:postgresql://b/b",),
    "jdbc_connection.with_driver_name": ("org.postgresql.Driver",),
    "jdbc_connection.with_user_name": ("b",),
    "jdbc_connection.with_password": ("b",),
    "jdbc_source.set_sql": ("SELECT 2",),
    "jdbc_source.set_connection_options": (JdbcConnectionOptions("jdbc:postgresql://b/b"),),
    "jdbc_source.set_type_info": (ROW,),
    "jdbc_source.partition_by": ("b", 1, 7, 7),
    "kafka_sink.set_bootstrap_servers": ("b:2",),
    "kafka_sink.set_delivery_guarantee": (DeliveryGuarantee.AT_LEAST_ONCE,),
    "kafka_sink.set_transactional_id_prefix": ("b",),
    "kafka_sink.set_record_serializer": (serializer("b"),),
    "kafka_sink.set_property": ("client.id", "b"),
    "kafka_sink.set_staging_directory": ("/somewhere/b",),
    "kafka_serializer.set_topic": ("b",),
    "kafka_serializer.set_topic_selector": (str,),
    "kafka_serializer.set_key_serialization_schema": (SimpleStringSchema(),),
    "kafka_serializer.set_value_serialization_schema": (SimpleStringSchema("UTF-16"),),
    "kafka_serializer.set_header_provider": (list,),
    "kafka_serializer.set_timestamp_provider": (int,),
    "kafka_serializer.set_partitioner": (max,),
    "csv_schema.add_column": ("b", Types.STRING()),
    "csv_schema.add_array_column": ("b",),
    "csv_schema.add_boolean_column": ("b",),
    "csv_schema.add_number_column": ("b",),
    "csv_schema.add_string_column": ("b",),
    "csv_schema.add_columns_from": (CsvSchema.builder().add_string_column("b").build(),),
    "csv_schema.clear_columns": (),
    "csv_schema.remove_array_element_separator": (0,),
    "csv_schema.set_allow_comments": (),
    "csv_schema.set_any_property_name": ("b",),
    "csv_schema.disable_array_element_separator": (),
    "csv_schema.set_array_element_separator": ("|",),
    "csv_schema.set_column_separator": ("|",),
    "csv_schema.disable_escape_char": None,
    "csv_schema.set_escape_char": ("!",),
    "csv_schema.set_line_separator": ("\r\n",),
    "csv_schema.set_null_value": ("null",),
    "csv_schema.disable_quote_char": (),
    "csv_schema.set_quote_char": ("'",),
    "csv_schema.set_skip_first_data_row": (),
    "csv_schema.set_strict_headers": (),
    "csv_schema.set_use_header": (),
    "csv_reader.set_field_delimiter": ("|",),
    "csv_reader.set_allow_comments": (True,),
    "csv_reader.set_array_element_delimiter": ("|",),
    "csv_reader.set_quote_character": ("'",),
    "csv_reader.set_escape_character": ("!",),
    "csv_reader.set_null_literal": ("null",),
    "csv_reader.set_ignore_parse_errors": (True,),
    "csv_writer.set_field_delimiter": ("|",),
    "csv_writer.set_line_delimiter": ("\r\n",),
    "csv_writer.set_array_element_delimiter": ("|",),
    "csv_writer.disable_quote_character": (),
    "csv_writer.set_quote_character": ("'",),
    "csv_writer.set_escape_character": ("!",),
    "csv_writer.set_null_literal": ("null",),
    "json_reader.type_info": None,
    "json_reader.json_schema": ("{}",),
    "json_reader.fail_on_missing_field": (),
    "json_reader.ignore_parse_errors": (),
    "json_writer.with_type_info": (Types.ROW_NAMED(["b"], [Types.STRING()]),),
    "output_file.with_part_prefix": ("b",),
    "output_file.with_part_suffix": ("b",),
    "compaction.enable_compaction_on_checkpoint": (7,),
    "compaction.set_size_threshold": (7,),
    "compaction.set_num_compact_threads": (7,),
}


def test_every_setter_of_a_builder_has_a_test_case() -> None:
    found = {
        f"{name}.{method}"
        for name, make in BUILDERS.items()
        for method in dir(make())
        if not method.startswith("_") and method not in ("build", "size")
    }
    assert sorted(found ^ set(BUILDER_SETTERS)) == []


def contents(item: Any) -> Any:
    """What an object holds, to be compared."""
    if isinstance(item, (list, tuple)):
        return [contents(part) for part in item]
    if isinstance(item, dict):
        return {key: contents(part) for key, part in item.items()}
    if isinstance(item, type) or not type(item).__module__.startswith("opchain"):
        return (
            repr(item) if type(item).__module__ == "builtins" and not callable(item) else type(item)
        )
    slots = [name for of in type(item).__mro__ for name in getattr(of, "__slots__", ())]
    held = {name: getattr(item, name, None) for name in slots} | getattr(item, "__dict__", {})
    return type(item), {name: contents(part) for name, part in held.items()}


@pytest.mark.parametrize(
    "setter", [name for name, arguments in BUILDER_SETTERS.items() if arguments is not None]
)
def test_each_setter_of_a_builder_has_an_effect_or_an_error_or_a_warning(
    setter: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, _, method = setter.partition(".")
    default = contents(BUILDERS[name]().build())
    assert contents(BUILDERS[name]().build()) == default
    arguments = BUILDER_SETTERS[setter]
    assert arguments is not None
    builder = BUILDERS[name]()
    with caplog.at_level(logging.WARNING, "opchain.job"):
        try:
            getattr(builder, method)(*arguments)
        except (StreamError, ValueError):
            return
    told = [line for line in caplog.messages if "has no effect" in line]
    assert told or contents(builder.build()) != default


@pytest.mark.parametrize("interval", ["rollover_interval", "inactivity_interval"])
def test_an_interval_of_a_rolling_policy_causes_a_warning(
    interval: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "opchain.job"):
        RollingPolicy.default_rolling_policy()
        assert caplog.messages == []
        RollingPolicy.default_rolling_policy(**{interval: 7})
    assert f"({interval}=7) has no effect" in caplog.text
