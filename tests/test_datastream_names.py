"""PyFlink 2.3's names, and that ours are there with the same parameters.

One line per class: its members, and its methods with the parameters that Python programs can pass (not
those that take Java objects). What a class inherits stands at its base alone. Ours may have more of
everything; where a method of ours takes more, it must not need it.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

PYFLINK = """
[functions]
KeyedStateStore: get_state(state_descriptor); get_list_state(state_descriptor);
    get_map_state(state_descriptor); get_reducing_state(state_descriptor);
    get_aggregating_state(state_descriptor)
RuntimeContext: get_task_name(); get_number_of_parallel_subtasks();
    get_max_number_of_parallel_subtasks(); get_index_of_this_subtask(); get_attempt_number();
    get_task_name_with_subtasks(); get_job_parameter(key, default_value); get_metrics_group()
Function: open(runtime_context); close()
MapFunction: map(value)
CoMapFunction: map1(value); map2(value)
FlatMapFunction: flat_map(value)
CoFlatMapFunction: flat_map1(value); flat_map2(value)
ReduceFunction: reduce(value1, value2)
AggregateFunction: create_accumulator(); add(value, accumulator); get_result(accumulator);
    merge(acc_a, acc_b)
KeySelector: get_key(value)
NullByteKeySelector:
FilterFunction: filter(value)
Partitioner: partition(key, num_partitions)
SourceFunction:
SinkFunction:
ProcessFunction: process_element(value, ctx)
ProcessFunction.Context: timer_service(); timestamp()
KeyedProcessFunction: process_element(value, ctx); on_timer(timestamp, ctx)
KeyedProcessFunction.Context: get_current_key(); timer_service(); timestamp()
KeyedProcessFunction.OnTimerContext: time_domain()
CoProcessFunction: process_element1(value, ctx); process_element2(value, ctx)
CoProcessFunction.Context: timer_service(); timestamp()
KeyedCoProcessFunction: process_element1(value, ctx); process_element2(value, ctx);
    on_timer(timestamp, ctx)
KeyedCoProcessFunction.Context: get_current_key(); timer_service(); timestamp()
KeyedCoProcessFunction.OnTimerContext: time_domain()
AsyncRetryPredicate: result_predicate(); exception_predicate()
AsyncRetryStrategy: can_retry(current_attempts); get_backoff_time_millis(current_attempts);
    get_retry_predicate(); no_restart(); fixed_delay(max_attempts, backoff_time_millis,
    result_predicate, exception_predicate); exponential_backoff(max_attempts, initial_delay,
    max_retry_delay, multiplier, result_predicate, exception_predicate)
AsyncFunction: async_invoke(value); timeout(value)
WindowFunction: apply(key, window, inputs)
AllWindowFunction: apply(window, inputs)
ProcessWindowFunction: process(key, context, elements); clear(context)
ProcessWindowFunction.Context: window(); current_processing_time(); current_watermark();
    window_state(); global_state()
ProcessAllWindowFunction: process(context, elements); clear(context)
ProcessAllWindowFunction.Context: window(); window_state(); global_state()
PassThroughWindowFunction:
PassThroughAllWindowFunction:
BaseBroadcastProcessFunction:
BaseBroadcastProcessFunction.BaseContext: timestamp(); current_processing_time();
    current_watermark()
BaseBroadcastProcessFunction.Context: get_broadcast_state(state_descriptor)
BaseBroadcastProcessFunction.ReadOnlyContext: get_broadcast_state(state_descriptor)
BroadcastProcessFunction: process_element(value, ctx); process_broadcast_element(value, ctx)
BroadcastProcessFunction.Context:
BroadcastProcessFunction.ReadOnlyContext:
KeyedBroadcastProcessFunction: process_element(value, ctx); process_broadcast_element(value,
    ctx); on_timer(timestamp, ctx)
KeyedBroadcastProcessFunction.Context:
KeyedBroadcastProcessFunction.ReadOnlyContext: timer_service(); get_current_key()
KeyedBroadcastProcessFunction.OnTimerContext: time_domain(); get_current_key()
[state]
OperatorStateStore: get_broadcast_state(state_descriptor)
State: clear()
ValueState: value(); update(value)
AppendingState: get(); add(value)
MergingState:
ReducingState:
AggregatingState:
ListState: update(values); add_all(values)
MapState: get(key); put(key, value); put_all(dict_value); remove(key); contains(key); items();
    keys(); values(); is_empty()
ReadOnlyBroadcastState: get(key); contains(key); items(); keys(); values(); is_empty()
BroadcastState: put(key, value); put_all(dict_value); remove(key)
StateDescriptor: __init__(name, type_info); get_name(); enable_time_to_live(ttl_config)
ValueStateDescriptor: __init__(name, value_type_info)
ListStateDescriptor: __init__(name, elem_type_info)
MapStateDescriptor: __init__(name, key_type_info, value_type_info)
ReducingStateDescriptor: __init__(name, reduce_function, type_info); get_reduce_function()
AggregatingStateDescriptor: __init__(name, agg_function, state_type_info); get_agg_function()
StateTtlConfig: __init__(update_type, state_visibility, ttl_time_characteristic, ttl,
    cleanup_strategies); new_builder(ttl); get_update_type(); get_state_visibility(); get_ttl();
    get_ttl_time_characteristic(); is_enabled(); get_cleanup_strategies()
StateTtlConfig.UpdateType: Disabled; OnCreateAndWrite; OnReadAndWrite
StateTtlConfig.StateVisibility: ReturnExpiredIfNotCleanedUp; NeverReturnExpired
StateTtlConfig.TtlTimeCharacteristic: ProcessingTime
StateTtlConfig.Builder: __init__(ttl); set_update_type(update_type);
    update_ttl_on_create_and_write(); update_ttl_on_read_and_write();
    set_state_visibility(state_visibility); return_expired_if_not_cleaned_up();
    never_return_expired(); set_ttl_time_characteristic(ttl_time_characteristic);
    use_processing_time(); cleanup_full_snapshot(); cleanup_incrementally(cleanup_size,
    run_cleanup_for_every_record);
    cleanup_in_rocksdb_compact_filter(query_time_after_num_entries, periodic_compaction_time);
    disable_cleanup_in_background(); set_ttl(ttl); build()
StateTtlConfig.CleanupStrategies: EMPTY_STRATEGY; __init__(strategies,
    is_cleanup_in_background); is_cleanup_in_background(); in_full_snapshot();
    get_incremental_cleanup_strategy(); get_rocksdb_compact_filter_cleanup_strategy()
StateTtlConfig.CleanupStrategies.Strategies: FULL_STATE_SCAN_SNAPSHOT; INCREMENTAL_CLEANUP;
    ROCKSDB_COMPACTION_FILTER
StateTtlConfig.CleanupStrategies.CleanupStrategy:
StateTtlConfig.CleanupStrategies.EmptyCleanupStrategy:
StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy: __init__(cleanup_size,
    run_cleanup_for_every_record); get_cleanup_size(); run_cleanup_for_every_record()
StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy:
    __init__(query_time_after_num_entries, periodic_compaction_time);
    get_query_time_after_num_entries(); get_periodic_compaction_time()
[window]
Window: max_timestamp()
TimeWindow: __init__(start, end); intersects(other); cover(other);
    get_window_start_with_offset(timestamp, offset, window_size); merge_windows(windows,
    callback)
CountWindow: __init__(id)
GlobalWindow: get()
TimeWindowSerializer: serialize(element, stream); deserialize(stream)
CountWindowSerializer: serialize(element, stream); deserialize(stream)
GlobalWindowSerializer: serialize(element, stream); deserialize(stream)
TriggerResult: CONTINUE; FIRE_AND_PURGE; FIRE; PURGE; is_fire(); is_purge()
Trigger: on_element(element, timestamp, window, ctx); on_processing_time(time, window, ctx);
    on_event_time(time, window, ctx); can_merge(); on_merge(window, ctx); clear(window, ctx)
Trigger.TriggerContext: get_current_processing_time(); get_metric_group();
    get_current_watermark(); register_processing_time_timer(time);
    register_event_time_timer(time); delete_processing_time_timer(time);
    delete_event_time_timer(time); get_partitioned_state(state_descriptor)
Trigger.OnMergeContext: merge_partitioned_state(state_descriptor)
WindowAssigner: assign_windows(element, timestamp, context); get_default_trigger(env);
    get_window_serializer(); is_event_time()
WindowAssigner.WindowAssignerContext: get_current_processing_time(); get_runtime_context()
MergingWindowAssigner: merge_windows(windows, callback)
MergingWindowAssigner.MergeCallback: merge(to_be_merged, merge_result)
SessionWindowTimeGapExtractor: extract(element)
EventTimeTrigger: create()
ContinuousEventTimeTrigger: __init__(interval); of(interval)
ProcessingTimeTrigger: create()
ContinuousProcessingTimeTrigger: __init__(interval); of(interval)
PurgingTrigger: __init__(nested_trigger); of(nested_trigger)
CountTrigger: __init__(window_size); of(window_size)
NeverTrigger:
CountTumblingWindowAssigner: __init__(window_size); of(window_size)
CountSlidingWindowAssigner: __init__(window_size, window_slide); of(window_size, window_slide)
TumblingProcessingTimeWindows: __init__(size, offset); of(size, offset)
TumblingEventTimeWindows: __init__(size, offset); of(size, offset)
SlidingProcessingTimeWindows: __init__(size, slide, offset); of(size, slide, offset)
SlidingEventTimeWindows: __init__(size, slide, offset); of(size, slide, offset)
ProcessingTimeSessionWindows: __init__(session_gap); with_gap(size); with_dynamic_gap(extractor)
EventTimeSessionWindows: __init__(session_gap); with_gap(size); with_dynamic_gap(extractor)
DynamicProcessingTimeSessionWindows: __init__(session_window_time_gap_extractor);
    with_dynamic_gap(extractor)
DynamicEventTimeSessionWindows: __init__(session_window_time_gap_extractor);
    with_dynamic_gap(extractor)
GlobalWindows: create()
[output_tag]
OutputTag: __init__(tag_id, type_info)
[time_domain]
TimeDomain: EVENT_TIME; PROCESSING_TIME
[timerservice]
TimerService: current_processing_time(); current_watermark();
    register_processing_time_timer(timestamp); register_event_time_timer(timestamp);
    delete_processing_time_timer(timestamp); delete_event_time_timer(timestamp)
[slot_sharing_group]
MemorySize: __init__(bytes_size); of_mebi_bytes(mebi_bytes); get_bytes(); get_kibi_bytes();
    get_mebi_bytes(); get_gibi_bytes(); get_tebi_bytes()
SlotSharingGroup: get_name(); get_managed_memory(); get_task_heap_memory();
    get_task_off_heap_memory(); get_cpu_cores(); get_external_resources(); builder(name)
SlotSharingGroup.Builder: set_cpu_cores(cpu_cores); set_task_heap_memory(task_heap_memory);
    set_task_heap_memory_mb(task_heap_memory_mb);
    set_task_off_heap_memory(task_off_heap_memory);
    set_task_off_heap_memory_mb(task_off_heap_memory_mb); set_managed_memory(managed_memory);
    set_managed_memory_mb(managed_memory_mb); set_external_resource(name, value); build()
[checkpoint_config]
CheckpointConfig: is_checkpointing_enabled(); get_checkpointing_mode();
    set_checkpointing_mode(checkpointing_mode); get_checkpoint_interval();
    set_checkpoint_interval(checkpoint_interval); get_checkpoint_timeout();
    set_checkpoint_timeout(checkpoint_timeout); get_min_pause_between_checkpoints();
    set_min_pause_between_checkpoints(min_pause_between_checkpoints);
    get_max_concurrent_checkpoints();
    set_max_concurrent_checkpoints(max_concurrent_checkpoints);
    is_fail_on_checkpointing_errors();
    set_fail_on_checkpointing_errors(fail_on_checkpointing_errors);
    get_tolerable_checkpoint_failure_number();
    set_tolerable_checkpoint_failure_number(tolerable_checkpoint_failure_number);
    set_externalized_checkpoint_retention(retention_mode);
    is_externalized_checkpoints_enabled(); get_externalized_checkpoint_retention();
    is_unaligned_checkpoints_enabled(); enable_unaligned_checkpoints(enabled);
    disable_unaligned_checkpoints(); set_aligned_checkpoint_timeout(alignment_timeout);
    get_aligned_checkpoint_timeout(); set_alignment_timeout(alignment_timeout);
    get_alignment_timeout(); set_force_unaligned_checkpoints(force_unaligned_checkpoints);
    is_force_unaligned_checkpoints()
[checkpoint_storage]
CheckpointStorage:
JobManagerCheckpointStorage: DEFAULT_MAX_STATE_SIZE; __init__(checkpoint_path, max_state_size);
    get_checkpoint_path(); get_max_state_size(); get_savepoint_path()
FileSystemCheckpointStorage: MAX_FILE_STATE_THRESHOLD; __init__(checkpoint_path,
    file_state_size_threshold, write_buffer_size); get_checkpoint_path(); get_savepoint_path();
    get_min_file_size_threshold(); get_write_buffer_size()
CustomCheckpointStorage:
[checkpointing_mode]
CheckpointingMode: EXACTLY_ONCE; AT_LEAST_ONCE
[execution_mode]
RuntimeExecutionMode: STREAMING; BATCH; AUTOMATIC
[externalized_checkpoint_retention]
ExternalizedCheckpointRetention: DELETE_ON_CANCELLATION; RETAIN_ON_CANCELLATION;
    NO_EXTERNALIZED_CHECKPOINTS
[state_backend]
StateBackend:
HashMapStateBackend:
EmbeddedRocksDBStateBackend: __init__(enable_incremental_checkpointing);
    set_db_storage_paths(*paths); get_db_storage_paths(); is_incremental_checkpoints_enabled();
    set_predefined_options(options); get_predefined_options();
    set_options(options_factory_class_name); get_options(); get_number_of_transfer_threads();
    set_number_of_transfer_threads(number_of_transfering_threads)
PredefinedOptions: DEFAULT; SPINNING_DISK_OPTIMIZED; SPINNING_DISK_OPTIMIZED_HIGH_MEM;
    FLASH_SSD_OPTIMIZED
CustomStateBackend:
[async_retry_predicates]
empty_result_predicate(result)
has_exception_predicate(error)
exception_type_predicate(error, expected_error_type)
[async_retry_strategies]
RetryPredicate: __init__(result_predicate, exception_predicate); result_predicate();
    exception_predicate()
NoRetryStrategy: can_retry(current_attempts); get_backoff_time_millis(current_attempts);
    get_retry_predicate()
FixedDelayRetryStrategy: __init__(max_attempts, backoff_time_millis, result_predicate,
    exception_predicate); can_retry(current_attempts);
    get_backoff_time_millis(current_attempts); get_retry_predicate()
ExponentialBackoffDelayRetryStrategy: __init__(max_attempts, initial_delay, max_retry_delay,
    multiplier, result_predicate, exception_predicate); can_retry(current_attempts);
    get_backoff_time_millis(current_attempts); get_retry_predicate()
[utils]
ResultTypeQueryable: get_produced_type()
[data_stream]
DataStream: get_name(); name(name); uid(uid); set_uid_hash(uid_hash);
    set_parallelism(parallelism); set_max_parallelism(max_parallelism); get_type();
    get_execution_environment(); get_execution_config(); force_non_parallel();
    set_buffer_timeout(timeout_millis); start_new_chain(); disable_chaining();
    slot_sharing_group(slot_sharing_group); set_description(description); map(func,
    output_type); flat_map(func, output_type); key_by(key_selector, key_type); filter(func);
    window_all(window_assigner); union(*streams); connect(ds); shuffle();
    project(*field_indexes); rescale(); rebalance(); forward();
    broadcast(broadcast_state_descriptor, *other_broadcast_state_descriptors); process(func,
    output_type); assign_timestamps_and_watermarks(watermark_strategy);
    partition_custom(partitioner, key_selector); add_sink(sink_func); sink_to(sink);
    execute_and_collect(job_execution_name, limit); print(sink_identifier);
    get_side_output(output_tag); cache()
DataStreamSink: name(name); uid(uid); set_uid_hash(uid_hash); set_parallelism(parallelism);
    set_description(description); disable_chaining(); slot_sharing_group(slot_sharing_group)
KeyedStream: reduce(func);
    sum(position_to_sum); min(position_to_min); max(position_to_max);
    min_by(position_to_min_by); max_by(position_to_max_by); window(window_assigner);
    count_window(size, slide); broadcast(*args)
WindowedStream: __init__(keyed_stream, window_assigner); get_execution_environment();
    get_input_type(); trigger(trigger); allowed_lateness(time_ms);
    side_output_late_data(output_tag); reduce(reduce_function, window_function, output_type);
    aggregate(aggregate_function, window_function, accumulator_type, output_type);
    apply(window_function, output_type); process(process_window_function, output_type)
AllWindowedStream: __init__(data_stream, window_assigner); get_execution_environment();
    get_input_type(); trigger(trigger); allowed_lateness(time_ms);
    side_output_late_data(output_tag); reduce(reduce_function, window_function, output_type);
    aggregate(aggregate_function, window_function, accumulator_type, output_type);
    apply(window_function, output_type); process(process_window_function, output_type)
ConnectedStreams: __init__(stream1, stream2); key_by(key_selector1, key_selector2, key_type);
    map(func, output_type); flat_map(func, output_type); process(func, output_type)
BroadcastStream: __init__(input_stream, broadcast_state_descriptors)
BroadcastConnectedStream: __init__(non_broadcast_stream, broadcast_stream,
    broadcast_state_descriptors); process(func, output_type)
CloseableIterator: next(); close()
[async_data_stream]
AsyncDataStream: unordered_wait(data_stream, async_function, timeout, capacity, output_type);
    unordered_wait_with_retry(data_stream, async_function, timeout, async_retry_strategy,
    capacity, output_type); ordered_wait(data_stream, async_function, timeout, capacity,
    output_type); ordered_wait_with_retry(data_stream, async_function, timeout,
    async_retry_strategy, capacity, output_type)
[stream_execution_environment]
StreamExecutionEnvironment: get_config(); set_parallelism(parallelism);
    set_max_parallelism(max_parallelism); register_slot_sharing_group(slot_sharing_group);
    get_parallelism(); get_max_parallelism(); set_runtime_mode(execution_mode);
    set_buffer_timeout(timeout_millis); get_buffer_timeout(); disable_operator_chaining();
    is_chaining_enabled(); is_chaining_of_operators_with_different_max_parallelism_enabled();
    get_checkpoint_config(); enable_checkpointing(interval, mode); get_checkpoint_interval();
    get_checkpointing_mode(); get_checkpointing_consistency_mode();
    enable_changelog_state_backend(enabled); is_changelog_state_backend_enabled();
    set_default_savepoint_directory(directory); get_default_savepoint_directory();
    configure(configuration); add_python_file(file_path);
    set_python_requirements(requirements_file_path, requirements_cache_dir);
    add_python_archive(archive_path, target_dir); set_python_executable(python_exec);
    add_jars(*jars_path); add_classpaths(*classpaths); get_default_local_parallelism();
    set_default_local_parallelism(parallelism); execute(job_name); execute_async(job_name);
    get_execution_plan(); register_cached_file(file_path, name, executable);
    get_execution_environment(configuration); create_input(input_format, type_info);
    add_source(source_func, source_name, type_info); from_source(source, watermark_strategy,
    source_name, type_info); from_collection(collection, type_info);
    is_unaligned_checkpoints_enabled(); is_force_unaligned_checkpoints(); close()
[connectors.file_system]
FileEnumeratorProvider: default_splittable_file_enumerator();
    default_non_splittable_file_enumerator()
FileSplitAssignerProvider: locality_aware_split_assigner()
StreamFormat: text_line_format(charset_name)
BulkFormat:
FileSourceBuilder: monitor_continuously(discovery_interval); process_static_file_set();
    set_file_enumerator(file_enumerator); set_split_assigner(split_assigner); build()
FileSource: for_record_stream_format(stream_format, *paths); for_bulk_file_format(bulk_format,
    *paths)
BucketAssigner: base_path_bucket_assigner(); date_time_bucket_assigner(format_str, timezone_id)
RollingPolicy: default_rolling_policy(part_size, rollover_interval, inactivity_interval);
    on_checkpoint_rolling_policy()
OutputFileConfig: builder(); __init__(part_prefix, part_suffix); get_part_prefix();
    get_part_suffix()
OutputFileConfig.OutputFileConfigBuilder: with_part_prefix(prefix); with_part_suffix(suffix);
    build()
FileSink: for_row_format(base_path, encoder); for_bulk_format(base_path, writer_factory)
FileSink.RowFormatBuilder: with_bucket_check_interval(interval);
    with_bucket_assigner(bucket_assigner); with_output_file_config(output_file_config);
    enable_compact(strategy, compactor); disable_compact(); with_rolling_policy(rolling_policy);
    build()
FileSink.BulkFormatBuilder: with_bucket_check_interval(interval);
    with_bucket_assigner(bucket_assigner); with_output_file_config(output_file_config);
    enable_compact(strategy, compactor); disable_compact(); with_rolling_policy(rolling_policy);
    build()
[connectors.jdbc]
JdbcSink: sink(sql, type_info, jdbc_connection_options, jdbc_execution_options)
JdbcConnectionOptions: get_db_url(); get_driver_name(); get_user_name(); get_password()
JdbcConnectionOptions.JdbcConnectionOptionsBuilder: __init__(); with_url(url);
    with_driver_name(driver_name); with_user_name(user_name); with_password(password); build()
JdbcExecutionOptions: get_batch_interval_ms(); get_batch_size(); get_max_retries(); defaults();
    builder()
JdbcExecutionOptions.Builder: __init__(); with_batch_size(size);
    with_batch_interval_ms(interval_ms); with_max_retries(max_retries); build()
[connectors.number_seq]
NumberSequenceSource: __init__(start, end)
[formats.csv]
CsvSchema: builder(); size(); __len__()
CsvSchemaBuilder: build(); add_array_column(name, separator, element_type);
    add_boolean_column(name); add_number_column(name, number_type); add_string_column(name);
    add_columns_from(schema); clear_columns(); set_allow_comments(allow);
    set_any_property_name(name); disable_array_element_separator();
    remove_array_element_separator(index); set_array_element_separator(separator);
    set_column_separator(char); disable_escape_char(); set_escape_char(char);
    set_line_separator(separator); set_null_value(null_value); disable_quote_char();
    set_quote_char(char); set_skip_first_data_row(skip); set_strict_headers(strict);
    set_use_header(use); size()
CsvReaderFormat: for_schema(schema)
CsvBulkWriters: for_schema(schema)
CsvRowDeserializationSchema.Builder: __init__(type_info); set_field_delimiter(delimiter);
    set_allow_comments(allow_comments); set_array_element_delimiter(delimiter);
    set_quote_character(c); set_escape_character(c); set_null_literal(null_literal);
    set_ignore_parse_errors(ignore_parse_errors); build()
CsvRowSerializationSchema.Builder: __init__(type_info); set_field_delimiter(c);
    set_line_delimiter(delimiter); set_array_element_delimiter(delimiter);
    disable_quote_character(); set_quote_character(c); set_escape_character(c);
    set_null_literal(s); build()
[formats.json]
JsonRowDeserializationSchema: builder()
JsonRowDeserializationSchema.Builder: type_info(type_info); json_schema(json_schema);
    fail_on_missing_field(); ignore_parse_errors(); build()
JsonRowSerializationSchema: builder()
JsonRowSerializationSchema.Builder: with_type_info(type_info); build()
[formats.parquet]
AvroParquetReaders: for_generic_record(schema)
AvroParquetWriters: for_generic_record(schema)
ParquetColumnarRowInputFormat: __init__(row_type, hadoop_config, batch_size, is_utc_timestamp,
    is_case_sensitive)
ParquetBulkWriters: for_row_type(row_type, hadoop_config, utc_timestamp)
[formats.avro]
AvroSchema: parse_string(json_schema); parse_file(file_path)
GenericRecordAvroTypeInfo: __init__(schema)
AvroInputFormat: __init__(path, schema); get_produced_type()
AvroBulkWriters: for_generic_record(schema)
AvroRowDeserializationSchema: __init__(record_class, avro_schema_string)
AvroRowSerializationSchema: __init__(record_class, avro_schema_string)
"""


def entries() -> list[tuple[str, str, str]]:
    """(module, name, what it has) of every line of the table; an indented line goes on."""
    module = ""
    found: list[tuple[str, str, str]] = []
    for line in PYFLINK.strip().splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line.startswith("    "):
            found[-1] = (*found[-1][:2], f"{found[-1][2]} {line.strip()}".strip())
        elif line:
            name, _, members = line.partition(":")
            found.append((module, name, members.strip()))
    return found


def parameters_of(owner: Any, name: str) -> list[inspect.Parameter]:
    """The parameters that a caller passes: without `self`."""
    parameters = list(inspect.signature(getattr(owner, name)).parameters.values())
    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    return parameters if is_static or inspect.ismodule(owner) else parameters[1:]


def check_method(owner: Any, declared: str) -> None:
    name, _, inside = declared.rstrip(")").partition("(")
    theirs = [parameter.strip() for parameter in inside.split(",") if parameter.strip()]
    ours = parameters_of(owner, name)
    names = ["*" * (p.kind is p.VAR_POSITIONAL) + p.name for p in ours]
    assert names[: len(theirs)] == theirs, f"{name}: PyFlink takes {theirs}, here it takes {names}"
    needed = [p.name for p in ours[len(theirs) :] if p.default is p.empty]
    needed = [n for n in needed if n not in {"args", "kwargs"}]
    assert not needed, f"{name} needs {needed}, which PyFlink doesn't have"


@pytest.mark.parametrize(("module", "name", "members"), entries())
def test_every_name_of_pyflink_is_there_with_its_parameters(
    module: str, name: str, members: str
) -> None:
    owner: Any = importlib.import_module(f"opchain.datastream.{module}")
    if "(" in name:
        check_method(owner, name)
        return
    for part in name.split("."):
        owner = getattr(owner, part)
    for member in filter(None, members.split("; ")):
        if "(" in member:
            check_method(owner, member)
        else:
            assert hasattr(owner, member)


def test_the_table_covers_every_module_it_names() -> None:
    modules = {module for module, _, _ in entries()}
    assert len(modules) == 26
    assert len(entries()) > 120


@pytest.mark.parametrize("module", sorted({module for module, _, _ in entries()}))
def test_every_name_that_a_module_lists_can_be_had(module: str) -> None:
    loaded = importlib.import_module(f"opchain.datastream.{module}")
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert sorted(loaded.__all__) == sorted(set(loaded.__all__))
