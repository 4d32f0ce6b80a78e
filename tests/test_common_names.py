"""Every public name of PyFlink 2.3's pyflink.common exists here, and takes the same arguments.

The table has modules, their names, and after a colon the members of a name. Parentheses hold the
parameters of what can be called; `?` marks one with a default. Left out are parameters that hand over
a Java object (`j_...`, and `py_class` beside one), constructors that take nothing else, and PyFlink's
constants for converting dates. The conversions of all types call their parameter `obj` here, as their
root class does in PyFlink.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PYFLINK = """
completable_future
  CompletableFuture: cancel() cancelled() done() result() exception()
config_options
  ConfigOptions: key(key) OptionBuilder OptionBuilder.boolean_type() OptionBuilder.int_type()
    OptionBuilder.long_type() OptionBuilder.float_type() OptionBuilder.double_type()
    OptionBuilder.string_type() TypedConfigOptionBuilder
    TypedConfigOptionBuilder.default_value(value) TypedConfigOptionBuilder.no_default_value()
  ConfigOption
configuration
  Configuration(other?): from_dict(map) get_string(key, default_value) set_string(key, value)
    parse_list_value(value) get_integer(key, default_value) set_integer(key, value)
    get_boolean(key, default_value) set_boolean(key, value) get_float(key, default_value)
    set_float(key, value) get_bytearray(key, default_value) set_bytearray(key, value) key_set()
    add_all_to_dict(target_dict) add_all(other, prefix?) contains_key(key) to_dict()
    remove_config(key)
constants
  MAX_LONG_VALUE
  MIN_LONG_VALUE
  DEFAULT_OUTPUT_TAG
execution_config
  ExecutionConfig: PARALLELISM_DEFAULT PARALLELISM_UNKNOWN enable_closure_cleaner()
    disable_closure_cleaner() is_closure_cleaner_enabled() set_auto_watermark_interval(interval)
    get_auto_watermark_interval() set_latency_tracking_interval(interval)
    get_latency_tracking_interval() get_parallelism() set_parallelism(parallelism)
    get_max_parallelism() set_max_parallelism(max_parallelism) get_task_cancellation_interval()
    set_task_cancellation_interval(interval) get_task_cancellation_timeout()
    set_task_cancellation_timeout(timeout) enable_force_kryo() disable_force_kryo()
    is_force_kryo_enabled() enable_generic_types() disable_generic_types()
    has_generic_types_disabled() enable_auto_generated_uids() disable_auto_generated_uids()
    has_auto_generated_uids_enabled() enable_force_avro() disable_force_avro()
    is_force_avro_enabled() enable_object_reuse() disable_object_reuse()
    is_object_reuse_enabled() get_global_job_parameters()
    set_global_job_parameters(global_job_parameters_dict) get_default_kryo_serializer_classes()
    get_registered_kryo_types() get_registered_pojo_types() is_use_snapshot_compression()
    set_use_snapshot_compression(use_snapshot_compression)
input_dependency_constraint
  InputDependencyConstraint: ANY ALL
io
  InputFormat
job_client
  JobClient: get_job_id() get_job_status() cancel()
    stop_with_savepoint(advance_to_end_of_event_time, savepoint_directory?)
    trigger_savepoint(savepoint_directory?) get_accumulators() get_job_execution_result()
job_execution_result
  JobExecutionResult: get_job_id() get_net_runtime() get_accumulator_result(accumulator_name)
    get_all_accumulator_results()
job_id
  JobID
job_status
  JobStatus: CREATED RUNNING FAILING FAILED CANCELLING CANCELED FINISHED RESTARTING SUSPENDED
    RECONCILING is_globally_terminal_state() is_terminal_state()
restart_strategy
  RestartStrategyConfiguration: get_description()
  RestartStrategies: no_restart() fall_back_restart()
    fixed_delay_restart(restart_attempts, delay_between_attempts)
    failure_rate_restart(failure_rate, failure_interval, delay_interval)
    NoRestartStrategyConfiguration
    FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts_interval)
    FixedDelayRestartStrategyConfiguration.get_restart_attempts()
    FixedDelayRestartStrategyConfiguration.get_delay_between_attempts_interval()
    FailureRateRestartStrategyConfiguration(max_failure_rate, failure_interval, delay_between_attempts_interval)
    FailureRateRestartStrategyConfiguration.get_max_failure_rate()
    FailureRateRestartStrategyConfiguration.get_failure_interval()
    FailureRateRestartStrategyConfiguration.get_delay_between_attempts_interval()
    FallbackRestartStrategyConfiguration
serialization
  SerializationSchema
  DeserializationSchema
  SimpleStringSchema(charset?)
  ByteArraySchema()
  Encoder: simple_string_encoder(charset_name?)
  BulkWriterFactory
  RowDataBulkWriterFactory(row_type): get_row_type()
  RowFieldExtractorSchema(field_index)
serializer
  TypeSerializer: serialize(element, stream) deserialize(stream)
  void
  VoidNamespaceSerializer: serialize(element, stream) deserialize(stream)
time
  Duration: of_days(days) of_hours(hours) of_millis(millis) of_minutes(minutes) of_nanos(nanos)
    of_seconds(seconds)
  Instant(seconds, nanos): to_epoch_milli() of_epoch_milli(epoch_milli)
  Time(milliseconds): to_milliseconds() milliseconds(milliseconds) seconds(seconds)
    minutes(minutes) hours(hours) days(days)
typeinfo
  TypeInformation(): get_java_type_info() need_conversion() to_internal_type(obj)
    from_internal_type(obj)
  BasicType: STRING BYTE BOOLEAN SHORT INT LONG FLOAT DOUBLE CHAR BIG_INT BIG_DEC INSTANT
  BasicTypeInfo(basic_type): get_java_type_info() STRING_TYPE_INFO() BOOLEAN_TYPE_INFO()
    BYTE_TYPE_INFO() SHORT_TYPE_INFO() INT_TYPE_INFO() LONG_TYPE_INFO() FLOAT_TYPE_INFO()
    DOUBLE_TYPE_INFO() CHAR_TYPE_INFO() BIG_INT_TYPE_INFO() BIG_DEC_TYPE_INFO()
    INSTANT_TYPE_INFO()
  InstantTypeInfo(basic_type): need_conversion() to_internal_type(obj) from_internal_type(obj)
  SqlTimeTypeInfo: DATE() TIME() TIMESTAMP()
  PrimitiveArrayTypeInfo(element_type): get_java_type_info()
  BasicArrayTypeInfo(element_type): get_java_type_info()
  ObjectArrayTypeInfo(element_type): get_java_type_info()
  PickledBytesTypeInfo: get_java_type_info()
  RowTypeInfo(field_types, field_names?): get_field_names() get_field_index(field_name)
    get_field_types() get_java_type_info() need_conversion() to_internal_type(obj)
    from_internal_type(obj)
  TupleTypeInfo(field_types): get_field_types() get_java_type_info() need_conversion()
    to_internal_type(obj) from_internal_type(obj)
  DateTypeInfo(): need_conversion() to_internal_type(obj) from_internal_type(obj)
    get_java_type_info()
  TimeTypeInfo: need_conversion() to_internal_type(obj) from_internal_type(obj)
    get_java_type_info()
  TimestampTypeInfo: need_conversion() to_internal_type(obj) from_internal_type(obj)
    get_java_type_info()
  ListTypeInfo(element_type): get_java_type_info()
  MapTypeInfo(key_type_info, value_type_info): get_java_type_info()
  LocalTimeTypeInfo(time_type): get_java_type_info() TimeType TimeType.LOCAL_DATE
    TimeType.LOCAL_TIME TimeType.LOCAL_DATE_TIME
  ExternalTypeInfo(type_info): get_java_type_info()
  Types: STRING() BYTE() BOOLEAN() SHORT() INT() LONG() FLOAT() DOUBLE() CHAR() BIG_INT()
    BIG_DEC() INSTANT() SQL_DATE() SQL_TIME() SQL_TIMESTAMP() PICKLED_BYTE_ARRAY()
    ROW(field_types) ROW_NAMED(field_names, field_types) TUPLE(field_types)
    PRIMITIVE_ARRAY(element_type) BASIC_ARRAY(element_type) OBJECT_ARRAY(element_type)
    MAP(key_type_info, value_type_info) LIST(element_type_info)
types
  RowKind: INSERT UPDATE_BEFORE UPDATE_AFTER DELETE to_j_row_kind()
  Row(*args, **kwargs): as_dict(recursive?) get_row_kind() set_row_kind(row_kind)
    set_field_names(field_names) get_fields_by_names(names) of_kind(row_kind, *args, **kwargs)
utils
  JavaObjectWrapper: get_java_object()
watermark_strategy
  WatermarkStrategy: with_timestamp_assigner(timestamp_assigner) with_idleness(idle_timeout)
    with_watermark_alignment(watermark_group, max_allowed_watermark_drift, update_interval?)
    for_monotonous_timestamps() for_bounded_out_of_orderness(max_out_of_orderness)
    no_watermarks()
  TimestampAssigner: extract_timestamp(value, record_timestamp)
  AssignerWithPeriodicWatermarksWrapper
"""

PACKAGE = (
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
)
"""What `pyflink.common` itself exports."""


def entries() -> Iterator[tuple[str, str]]:
    """Each module with each of its names and members, as `Name.member(parameters)`."""
    module = owner = ""
    for line in PYFLINK.strip().splitlines():
        indent = len(line) - len(line.lstrip())
        parts = ENTRY.findall(line)
        if indent == MODULE:
            module = line
            continue
        if indent == NAME:
            owner = parts[0].partition("(")[0]
            yield module, parts.pop(0)
        yield from ((module, f"{owner}.{part}") for part in parts)


MODULE, NAME = 0, 2
ENTRY = re.compile(r"[\w.]+(?:\([^)]*\))?")


def test_the_table_is_read_as_a_whole() -> None:
    read = list(entries())
    assert len(read) == len(set(read)) == 301
    assert ("configuration", "Configuration.add_all(other, prefix?)") in read
    assert ("restart_strategy", "RestartStrategies.no_restart()") in read


def ours(module: str, name: str) -> Any:
    return attrgetter(name)(importlib.import_module(f"opchain.common.{module}"))


@pytest.mark.parametrize(("module", "entry"), list(entries()), ids=str)
def test_a_name_of_pyflink_is_here_with_its_parameters(module: str, entry: str) -> None:
    name, parameters = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", entry).groups()  # type: ignore[union-attr]
    found = ours(module, name)
    if parameters is None:
        return
    assert callable(found)
    expected = [part for part in parameters.split(", ") if part]
    assert described(found)[: len(expected)] == expected
    # More parameters than PyFlink's are fine where a call may leave them out.
    assert all(extra[-1] == "?" or extra[0] == "*" for extra in described(found)[len(expected) :])


def described(function: Any) -> list[str]:
    """The parameters as the table writes them; without the self of a method."""
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        del parameters[0]
    return [describe(parameter) for parameter in parameters]


def describe(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    return parameter.name + ("" if parameter.default is parameter.empty else "?")


@pytest.mark.parametrize("name", PACKAGE)
def test_the_package_has_what_pyflinks_has(name: str) -> None:
    package = importlib.import_module("opchain.common")
    assert name in package.__all__
    assert name in dir(package)
    assert getattr(package, name) is not None


def test_the_package_exports_nothing_that_is_not_there() -> None:
    package = importlib.import_module("opchain.common")
    for name in package.__all__:
        value = getattr(package, name)
        assert value.__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018


@pytest.mark.parametrize("format_name", ["avro", "csv", "json"])
@pytest.mark.parametrize("direction", ["Deserialization", "Serialization"])
def test_schemas_of_formats_are_here_where_the_format_is(format_name: str, direction: str) -> None:
    package = importlib.import_module("opchain.common")
    name = f"{format_name.capitalize()}Row{direction}Schema"
    module = f"opchain.datastream.formats.{format_name}"
    if importlib.util.find_spec(module) is None:
        with pytest.raises(AttributeError, match=f"{name} is not available: .* {module}"):
            getattr(package, name)
    else:
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", sorted({module for module, _ in entries()}))
def test_a_module_exports_what_it_has(module: str) -> None:
    package = importlib.import_module(f"opchain.common.{module}")
    # pytest adds names that begin with "@" to what it imports of an installed package.
    public = {name for name in vars(package) if name[0] not in "_@"} - {"annotations"}
    assert public == set(package.__all__)


def test_importing_the_package_loads_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import opchain.common; "
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('opchain')))"
    )
    assert printed_by(program) == "['opchain', 'opchain.common']"


def test_the_runtime_half_does_not_load_the_compiler() -> None:
    names = [name for name in PACKAGE if name not in COMPILED]
    program = (
        f"import sys; from opchain.common import {', '.join(names)}; "
        "print([m for m in sys.modules if m.startswith('opchain.compiler')])"
    )
    assert printed_by(program) == "[]"


COMPILED = {
    "ExecutionConfig",
    "InputDependencyConstraint",
    "RestartStrategies",
    "RestartStrategyConfiguration",
}


def printed_by(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return run.stdout.strip()
