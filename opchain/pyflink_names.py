"""The modules of PyFlink 2.3 and their names. Written by tests/record_pyflink_names.py.

A module is listed in brackets. Each line is `defining module: names`. The defining module `.` is the listed module
itself; `typing` means type variables.
"""

NAMES = """
[common]
common.completable_future: CompletableFuture
common.config_options: ConfigOption ConfigOptions
common.configuration: Configuration
common.execution_config: ExecutionConfig
common.input_dependency_constraint: InputDependencyConstraint
common.job_client: JobClient
common.job_execution_result: JobExecutionResult
common.job_id: JobID
common.job_status: JobStatus
common.restart_strategy: RestartStrategies RestartStrategyConfiguration
common.serialization: ByteArraySchema DeserializationSchema Encoder SerializationSchema SimpleStringSchema
common.serializer: TypeSerializer
common.time: Duration Instant Time
common.typeinfo: TypeInformation Types
common.types: Row RowKind
common.watermark_strategy: AssignerWithPeriodicWatermarksWrapper WatermarkStrategy
datastream.formats.avro: AvroRowDeserializationSchema AvroRowSerializationSchema
datastream.formats.csv: CsvRowDeserializationSchema CsvRowSerializationSchema
datastream.formats.json: JsonRowDeserializationSchema JsonRowSerializationSchema
[common.completable_future]
.: CompletableFuture
util.exceptions: convert_py4j_exception
[common.config_options]
.: ConfigOption ConfigOptions
java_gateway: get_gateway
typing: T
[common.configuration]
.: Configuration
java_gateway: get_gateway
util.java_utils: add_jars_to_context_class_loader
[common.constants]
.: DEFAULT_OUTPUT_TAG MAX_LONG_VALUE MIN_LONG_VALUE
[common.execution_config]
.: ExecutionConfig
java_gateway: get_gateway
[common.input_dependency_constraint]
.: InputDependencyConstraint
java_gateway: get_gateway
[common.io]
.: InputFormat
common.utils: JavaObjectWrapper
[common.job_client]
.: JobClient
common.completable_future: CompletableFuture
common.job_execution_result: JobExecutionResult
common.job_id: JobID
common.job_status: JobStatus
[common.job_execution_result]
.: JobExecutionResult
common.job_id: JobID
[common.job_id]
.: JobID
[common.job_status]
.: JobStatus
java_gateway: get_gateway
[common.restart_strategy]
.: RestartStrategies RestartStrategyConfiguration
java_gateway: get_gateway
util.java_utils: from_j_duration to_j_duration
[common.serialization]
.: BulkWriterFactory ByteArraySchema DeserializationSchema Encoder RowDataBulkWriterFactory RowFieldExtractorSchema SerializationSchema SimpleStringSchema
common.utils: JavaObjectWrapper
java_gateway: get_gateway
[common.serializer]
.: TypeSerializer VoidNamespaceSerializer void
typing: T
[common.time]
.: Duration Instant Time
java_gateway: get_gateway
[common.typeinfo]
.: BasicArrayTypeInfo BasicType BasicTypeInfo DateTypeInfo ExternalTypeInfo InstantTypeInfo ListTypeInfo LocalTimeTypeInfo MapTypeInfo ObjectArrayTypeInfo PickledBytesTypeInfo PrimitiveArrayTypeInfo RowTypeInfo SqlTimeTypeInfo TimeTypeInfo TimestampTypeInfo TupleTypeInfo TypeInformation Types
java_gateway: get_gateway
[common.types]
.: Row RowKind
java_gateway: get_gateway
[common.utils]
.: JavaObjectWrapper
[common.watermark_strategy]
.: AssignerWithPeriodicWatermarksWrapper TimestampAssigner WatermarkStrategy
common.time: Duration
java_gateway: get_gateway
[datastream]
datastream.async_data_stream: AsyncDataStream
datastream.checkpoint_config: CheckpointConfig
datastream.checkpoint_storage: CheckpointStorage CustomCheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage
datastream.checkpointing_mode: CheckpointingMode
datastream.data_stream: BroadcastConnectedStream BroadcastStream ConnectedStreams DataStream DataStreamSink KeyedStream WindowedStream
datastream.execution_mode: RuntimeExecutionMode
datastream.externalized_checkpoint_retention: ExternalizedCheckpointRetention
datastream.functions: AggregateFunction AsyncFunction AsyncRetryPredicate AsyncRetryStrategy BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction FilterFunction FlatMapFunction KeySelector KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction MapFunction Partitioner ProcessFunction ProcessWindowFunction ReduceFunction RuntimeContext SinkFunction SourceFunction WindowFunction
datastream.output_tag: OutputTag
datastream.slot_sharing_group: MemorySize SlotSharingGroup
datastream.state_backend: CustomStateBackend EmbeddedRocksDBStateBackend HashMapStateBackend PredefinedOptions StateBackend
datastream.stream_execution_environment: StreamExecutionEnvironment
datastream.time_domain: TimeDomain
datastream.timerservice: TimerService
datastream.window: CountWindow GlobalWindow MergingWindowAssigner TimeWindow Trigger TriggerResult Window WindowAssigner
[datastream.async_data_stream]
.: AsyncDataStream
common.time: Time
common.typeinfo: TypeInformation
datastream.data_stream: DataStream
datastream.functions: AsyncFunction AsyncFunctionDescriptor AsyncRetryStrategy
java_gateway: get_gateway
util.java_utils: get_j_env_configuration
[datastream.async_retry_predicates]
.: empty_result_predicate exception_type_predicate has_exception_predicate
[datastream.async_retry_strategies]
.: ExponentialBackoffDelayRetryStrategy FixedDelayRetryStrategy NO_RETRY_STRATEGY NoRetryStrategy RetryPredicate
datastream.functions: AsyncRetryPredicate AsyncRetryStrategy
typing: OUT
[datastream.checkpoint_config]
.: CheckpointConfig
common.time: Duration
datastream.checkpointing_mode: CheckpointingMode
datastream.externalized_checkpoint_retention: ExternalizedCheckpointRetention
[datastream.checkpoint_storage]
.: CheckpointStorage CustomCheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage
java_gateway: get_gateway
[datastream.checkpointing_mode]
.: CheckpointingMode
java_gateway: get_gateway
[datastream.connectors]
datastream.connectors.base: DeliveryGuarantee Sink Source
datastream.connectors.dynamic_kafka: DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService KafkaRecordDeserializationSchema KafkaStreamSetSubscriber KafkaStreamSubscriber SingleClusterTopicMetadataService StreamPatternSubscriber
datastream.connectors.file_system: BucketAssigner FileEnumeratorProvider FileSink FileSource FileSourceBuilder FileSplitAssignerProvider OutputFileConfig RollingPolicy StreamFormat StreamingFileSink
datastream.connectors.jdbc: JdbcConnectionOptions JdbcExecutionOptions JdbcSink
datastream.connectors.kafka: FlinkKafkaConsumer FlinkKafkaProducer KafkaSource Semantic
datastream.connectors.number_seq: NumberSequenceSource
datastream.connectors.pulsar: PulsarSource PulsarSourceBuilder StartCursor StopCursor
datastream.connectors.rabbitmq: RMQConnectionConfig RMQSink RMQSource
[datastream.connectors.base]
.: DeliveryGuarantee Sink Source StreamTransformer SupportsPreprocessing
datastream.functions: JavaFunctionWrapper
java_gateway: get_gateway
[datastream.connectors.cassandra]
.: CassandraCommitter CassandraFailureHandler CassandraSink ClusterBuilder ConsistencyLevel MapperOptions
common.time: Duration
java_gateway: get_gateway
[datastream.connectors.dynamic_kafka]
.: DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService KafkaRecordDeserializationSchema KafkaStreamSetSubscriber KafkaStreamSubscriber SingleClusterTopicMetadataService StreamPatternSubscriber
common.serialization: DeserializationSchema
datastream.connectors.base: Source
datastream.connectors.kafka: KafkaOffsetsInitializer
java_gateway: get_gateway
[datastream.connectors.elasticsearch]
.: Elasticsearch6SinkBuilder Elasticsearch7SinkBuilder ElasticsearchEmitter ElasticsearchSink ElasticsearchSinkBuilderBase FlushBackoffType
datastream.connectors.base: DeliveryGuarantee Sink
java_gateway: get_gateway
util.java_utils: to_jarray
[datastream.connectors.file_system]
.: BucketAssigner BulkFormat DefaultRollingPolicy FileCompactStrategy FileCompactor FileEnumeratorProvider FileSink FileSource FileSourceBuilder FileSplitAssignerProvider OnCheckpointRollingPolicy OutputFileConfig RollingPolicy StreamFormat StreamingFileSink
common.serialization: BulkWriterFactory Encoder RowDataBulkWriterFactory
common.time: Duration
common.utils: JavaObjectWrapper
datastream.connectors.base: Sink Source StreamTransformer SupportsPreprocessing
datastream.functions: SinkFunction
java_gateway: get_gateway
util.java_utils: is_instance_of to_jarray
[datastream.connectors.hybrid_source]
.: HybridSource HybridSourceBuilder
datastream.connectors.base: Source
java_gateway: get_gateway
[datastream.connectors.jdbc]
.: JdbcConnectionOptions JdbcExecutionOptions JdbcSink
common.typeinfo: RowTypeInfo
datastream.functions: SinkFunction
java_gateway: get_gateway
util.java_utils: to_jarray
[datastream.connectors.kafka]
.: FlinkKafkaConsumer FlinkKafkaConsumerBase FlinkKafkaProducer FlinkKafkaProducerBase KafkaOffsetResetStrategy KafkaOffsetsInitializer KafkaRecordSerializationSchema KafkaRecordSerializationSchemaBuilder KafkaSink KafkaSinkBuilder KafkaSource KafkaSourceBuilder KafkaTopicPartition KafkaTopicSelector Semantic
common.serialization: DeserializationSchema SerializationSchema
common.typeinfo: TypeInformation Types
common.types: Row
datastream.connectors.base: DeliveryGuarantee Sink Source StreamTransformer SupportsPreprocessing
datastream.functions: SinkFunction SourceFunction
java_gateway: get_gateway
util.java_utils: get_field get_field_value to_jarray
[datastream.connectors.kinesis]
.: FlinkKinesisConsumer KinesisDeserializationSchema KinesisFirehoseSink KinesisFirehoseSinkBuilder KinesisShardAssigner KinesisStreamsSink KinesisStreamsSinkBuilder PartitionKeyGenerator WatermarkTracker
common.serialization: DeserializationSchema SerializationSchema
common.watermark_strategy: AssignerWithPeriodicWatermarksWrapper
datastream.connectors.base: Sink
datastream.functions: SourceFunction
java_gateway: get_gateway
[datastream.connectors.number_seq]
.: NumberSequenceSource
datastream.connectors.base: Source
java_gateway: get_gateway
[datastream.connectors.pulsar]
.: MessageDelayer PulsarSink PulsarSinkBuilder PulsarSource PulsarSourceBuilder RangeGenerator StartCursor StopCursor TopicRoutingMode
common.config_options: ConfigOption ConfigOptions
common.serialization: DeserializationSchema SerializationSchema
common.time: Duration
datastream.connectors.base: DeliveryGuarantee Sink Source
java_gateway: get_gateway
util.java_utils: load_java_class
[datastream.connectors.rabbitmq]
.: RMQConnectionConfig RMQSink RMQSource
common.serialization: DeserializationSchema SerializationSchema
datastream.functions: SinkFunction SourceFunction
java_gateway: get_gateway
[datastream.data_stream]
.: AllWindowedStream BroadcastConnectedStream BroadcastStream CachedDataStream CloseableIterator ConnectedStreams DataStream DataStreamSink KeyedStream WINDOW_STATE_NAME WindowedStream
common.execution_config: ExecutionConfig
common.typeinfo: RowTypeInfo TypeInformation Types
common.types: Row
common.watermark_strategy: TimestampAssigner WatermarkStrategy
datastream.connectors.base: Sink
datastream.functions: AggregateFunction AllWindowFunction AsyncFunctionDescriptor BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction FilterFunction FlatMapFunction Function FunctionWrapper InternalIterableAllWindowFunction InternalIterableProcessAllWindowFunction InternalIterableProcessWindowFunction InternalIterableWindowFunction InternalSingleValueAllWindowFunction InternalSingleValueProcessAllWindowFunction InternalSingleValueProcessWindowFunction InternalSingleValueWindowFunction InternalWindowFunction KeySelector KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction MapFunction NullByteKeySelector Partitioner PassThroughAllWindowFunction PassThroughWindowFunction ProcessAllWindowFunction ProcessFunction ProcessWindowFunction ReduceFunction RuntimeContext SinkFunction WindowFunction
datastream.output_tag: OutputTag
datastream.slot_sharing_group: SlotSharingGroup
datastream.state: AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor ReducingState ReducingStateDescriptor StateDescriptor
datastream.utils: convert_to_python_obj
datastream.window: CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindowSerializer GlobalWindowSerializer MergingWindowAssigner TimeWindowSerializer Trigger WindowAssigner WindowOperationDescriptor
java_gateway: get_gateway
util.java_utils: get_j_env_configuration to_jarray
[datastream.execution_mode]
.: RuntimeExecutionMode
java_gateway: get_gateway
[datastream.externalized_checkpoint_retention]
.: ExternalizedCheckpointRetention
java_gateway: get_gateway
[datastream.formats]
[datastream.formats.avro]
.: AvroBulkWriters AvroInputFormat AvroRowDeserializationSchema AvroRowSerializationSchema AvroSchema GenericRecordAvroTypeInfo
common.io: InputFormat
common.serialization: BulkWriterFactory DeserializationSchema SerializationSchema
common.typeinfo: TypeInformation
datastream.utils: ResultTypeQueryable
java_gateway: get_gateway
util.java_utils: get_field_value load_java_class
[datastream.formats.csv]
.: CsvBulkWriters CsvReaderFormat CsvRowDeserializationSchema CsvRowSerializationSchema CsvSchema CsvSchemaBuilder
common.serialization: BulkWriterFactory DeserializationSchema RowDataBulkWriterFactory SerializationSchema
common.typeinfo: TypeInformation
datastream.connectors.file_system: StreamFormat
java_gateway: get_gateway
[datastream.formats.json]
.: JsonRowDeserializationSchema JsonRowSerializationSchema
common.serialization: DeserializationSchema SerializationSchema
common.typeinfo: TypeInformation
java_gateway: get_gateway
[datastream.formats.orc]
.: OrcBulkWriters
common.configuration: Configuration
common.serialization: BulkWriterFactory RowDataBulkWriterFactory
datastream.utils: create_hadoop_configuration create_java_properties
java_gateway: get_gateway
util.java_utils: to_jarray
[datastream.formats.parquet]
.: AvroParquetReaders AvroParquetWriters ParquetBulkWriters ParquetColumnarRowInputFormat
common.configuration: Configuration
common.serialization: BulkWriterFactory RowDataBulkWriterFactory
datastream.connectors.file_system: BulkFormat StreamFormat
datastream.formats.avro: AvroSchema
datastream.utils: create_hadoop_configuration
java_gateway: get_gateway
[datastream.functions]
.: AggregateFunction AllWindowFunction AsyncFunction AsyncFunctionDescriptor AsyncRetryPredicate AsyncRetryStrategy BaseBroadcastProcessFunction BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction FilterFunction FlatMapFunction Function FunctionWrapper InternalIterableAllWindowFunction InternalIterableProcessAllWindowFunction InternalIterableProcessWindowFunction InternalIterableWindowFunction InternalProcessAllWindowContext InternalProcessWindowContext InternalSingleValueAllWindowFunction InternalSingleValueProcessAllWindowFunction InternalSingleValueProcessWindowFunction InternalSingleValueWindowFunction InternalWindowFunction JavaFunctionWrapper KeySelector KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction KeyedStateStore MapFunction NullByteKeySelector Partitioner PassThroughAllWindowFunction PassThroughWindowFunction ProcessAllWindowFunction ProcessFunction ProcessWindowFunction ReduceFunction ReduceFunctionWrapper RuntimeContext SinkFunction SourceFunction WindowFunction
datastream.state: AggregatingState AggregatingStateDescriptor BroadcastState ListState ListStateDescriptor MapState MapStateDescriptor ReadOnlyBroadcastState ReducingState ReducingStateDescriptor ValueState ValueStateDescriptor
datastream.time_domain: TimeDomain
datastream.timerservice: TimerService
java_gateway: get_gateway
metrics.metricbase: MetricGroup
typing: IN IN1 IN2 KEY OUT W W2
[datastream.output_tag]
.: OutputTag
common.typeinfo: RowTypeInfo TypeInformation Types
java_gateway: get_gateway
[datastream.slot_sharing_group]
.: MemorySize SlotSharingGroup
java_gateway: get_gateway
[datastream.state]
.: AggregatingState AggregatingStateDescriptor AppendingState BroadcastState ListState ListStateDescriptor MapState MapStateDescriptor MergingState OperatorStateStore ReadOnlyBroadcastState ReducingState ReducingStateDescriptor State StateDescriptor StateTtlConfig ValueState ValueStateDescriptor
common.time: Duration Time
common.typeinfo: TypeInformation Types
typing: IN K OUT T V
[datastream.state_backend]
.: CustomStateBackend EmbeddedRocksDBStateBackend HashMapStateBackend PredefinedOptions StateBackend
java_gateway: get_gateway
util.java_utils: load_java_class
[datastream.stream_execution_environment]
.: StreamExecutionEnvironment
common.configuration: Configuration
common.execution_config: ExecutionConfig
common.io: InputFormat
common.job_client: JobClient
common.job_execution_result: JobExecutionResult
common.typeinfo: TypeInformation Types
common.watermark_strategy: WatermarkStrategy
datastream.checkpoint_config: CheckpointConfig
datastream.checkpointing_mode: CheckpointingMode
datastream.connectors.base: Source
datastream.data_stream: DataStream
datastream.execution_mode: RuntimeExecutionMode
datastream.functions: SourceFunction
datastream.slot_sharing_group: SlotSharingGroup
datastream.utils: ResultTypeQueryable
java_gateway: get_gateway
serializers: PickleSerializer
util.api_stability_decorators: Public
util.java_utils: add_jars_to_context_class_loader get_field_value get_j_env_configuration invoke_method is_local_deployment
[datastream.time_domain]
.: TimeDomain
[datastream.timerservice]
.: TimerService
[datastream.utils]
.: ResultTypeQueryable convert_to_python_obj create_hadoop_configuration create_java_properties pickled_bytes_to_python_obj
common.configuration: Configuration
common.typeinfo: BasicArrayTypeInfo ExternalTypeInfo ListTypeInfo MapTypeInfo ObjectArrayTypeInfo PrimitiveArrayTypeInfo RowTypeInfo TupleTypeInfo TypeInformation Types
common.types: Row RowKind
java_gateway: get_gateway
[datastream.window]
.: ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountSlidingWindowAssigner CountTrigger CountTumblingWindowAssigner CountWindow CountWindowSerializer DynamicEventTimeSessionWindows DynamicProcessingTimeSessionWindows EventTimeSessionWindows EventTimeTrigger GlobalWindow GlobalWindowSerializer GlobalWindows MAX_LONG_VALUE MIN_LONG_VALUE MergingWindowAssigner Min NeverTrigger ProcessingTimeSessionWindows ProcessingTimeTrigger PurgingTrigger SessionWindowTimeGapExtractor SlidingEventTimeWindows SlidingProcessingTimeWindows TimeWindow TimeWindowSerializer Trigger TriggerResult TumblingEventTimeWindows TumblingProcessingTimeWindows Window WindowAssigner WindowOperationDescriptor long_to_int_with_bit_mixing mod_inverse
common.serializer: TypeSerializer
common.time: Time
common.typeinfo: Types
datastream.functions: InternalWindowFunction ReduceFunction RuntimeContext
datastream.output_tag: OutputTag
datastream.state: ReducingState ReducingStateDescriptor State StateDescriptor ValueStateDescriptor
metrics.metricbase: MetricGroup
typing: IN KEY OUT T W W2
[java_gateway]
.: PythonFunctionFactory WARN Watchdog get_gateway import_flink_view is_launch_gateway_disabled launch_gateway
util.exceptions: install_exception_handler install_py4j_hooks
[metrics]
metrics.metricbase: Counter Distribution Meter Metric MetricGroup
[metrics.metricbase]
.: Counter Distribution Meter Metric MetricGroup
[serializers]
.: BatchedSerializer IterableSerializer PickleSerializer SpecialLengths VarLengthDataSerializer read_int write_int
common.serializer: TypeSerializer
typing: T
[table]
common.types: Row RowKind
table.changelog_mode: ChangelogMode
table.compiled_plan: CompiledPlan
table.data_view: DataView ListView MapView
table.environment_settings: EnvironmentSettings
table.explain_detail: ExplainDetail
table.expression: Expression
table.module: Module ModuleEntry
table.plan_reference: PlanReference
table.result_kind: ResultKind
table.schema: Schema
table.sql_dialect: SqlDialect
table.statement_set: StatementSet
table.table: GroupWindowedTable GroupedTable OverWindowedTable Table WindowGroupedTable
table.table_config: TableConfig
table.table_descriptor: FormatDescriptor TableDescriptor
table.table_environment: StreamTableEnvironment TableEnvironment
table.table_pipeline: TablePipeline
table.table_result: TableResult
table.table_schema: TableSchema
table.types: DataTypes UserDefinedType
table.udf: AggregateFunction AsyncScalarFunction FunctionContext ScalarFunction TableAggregateFunction TableFunction
[table.catalog]
.: Catalog CatalogBaseTable CatalogColumnStatistics CatalogDatabase CatalogDescriptor CatalogFunction CatalogModel CatalogPartition CatalogPartitionSpec CatalogTableStatistics Column ComputedColumn Constraint HiveCatalog JdbcCatalog MetadataColumn ObjectIdentifier ObjectPath PhysicalColumn Procedure ResolvedSchema UniqueConstraint WatermarkSpec
common.configuration: Configuration
java_gateway: get_gateway
table.resolved_expression: ResolvedExpression
table.schema: Schema
table.table_schema: TableSchema
table.types: DataType
util.api_stability_decorators: PublicEvolving
util.java_utils: to_jarray
[table.changelog_mode]
.: ChangelogMode
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
[table.compiled_plan]
.: CompiledPlan
java_gateway: get_gateway
table.explain_detail: ExplainDetail
table.table_result: TableResult
util.api_stability_decorators: Experimental
util.java_utils: to_j_explain_detail_arr
[table.data_view]
.: DataView ListView MapView
typing: K T V
util.api_stability_decorators: PublicEvolving
[table.descriptors]
.: Descriptor Rowtime Schema
java_gateway: get_gateway
table.table_schema: TableSchema
table.types: DataType
util.api_stability_decorators: Deprecated
[table.environment_settings]
.: EnvironmentSettings
common.configuration: Configuration
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
util.java_utils: create_url_class_loader
[table.explain_detail]
.: ExplainDetail
util.api_stability_decorators: PublicEvolving
[table.expression]
.: Expression JsonExistsOnError JsonOnNull JsonQueryOnEmptyOrError JsonQueryWrapper JsonType JsonValueOnEmptyOrError TimeIntervalUnit TimePointUnit
java_gateway: get_gateway
table.types: DataType DataTypes
typing: T
util.api_stability_decorators: PublicEvolving
util.java_utils: to_jarray
[table.expressions]
.: CURRENT_RANGE CURRENT_ROW UNBOUNDED_RANGE UNBOUNDED_ROW and_ array atan2 call call_sql coalesce col concat concat_ws convert_tz current_database current_date current_time current_timestamp current_watermark date_format descriptor e from_unixtime if_then_else json json_array json_array_agg json_object json_object_agg json_string lag lead lit local_time local_timestamp log map_ map_from_arrays negative not_ null_of object_of or_ pi rand rand_integer range_ row row_interval source_watermark temporal_overlaps timestamp_diff to_date to_timestamp to_timestamp_ltz unix_timestamp uuid with_all_columns with_columns without_columns
java_gateway: get_gateway
table.expression: Expression JsonOnNull TimePointUnit
table.types: DataType
table.udf: UserDefinedFunctionWrapper
util.api_stability_decorators: PublicEvolving
util.java_utils: load_java_class to_jarray
[table.functions]
.: AvgAggFunction Count1AggFunction CountAggFunction DecimalSum0AggFunction FirstValueAggFunction FirstValueWithRetractAggFunction FloatSum0AggFunction IntSum0AggFunction LastValueAggFunction LastValueWithRetractAggFunction ListAggFunction ListAggWithRetractAggFunction ListAggWsWithRetractAggFunction MAX_LONG_VALUE MIN_LONG_VALUE MaxAggFunction MaxWithRetractAggFunction MinAggFunction MinWithRetractAggFunction Sum0AggFunction SumAggFunction SumWithRetractAggFunction WelfordM2AggFunction
table.data_view: ListView MapView
table.udf: AggregateFunction
util.api_stability_decorators: Internal
[table.model_descriptor]
.: ModelDescriptor
common.config_options: ConfigOption
java_gateway: get_gateway
table.schema: Schema
[table.module]
.: HiveModule Module ModuleEntry
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
[table.plan_reference]
.: BytesContentPlanReference FilePlanReference JsonContentPlanReference PlanReference
java_gateway: get_gateway
util.api_stability_decorators: Experimental
[table.resolved_expression]
.: ResolvedExpression
table.expression: Expression
table.types: DataType
util.api_stability_decorators: PublicEvolving
[table.result_kind]
.: ResultKind
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
[table.schema]
.: Schema
java_gateway: get_gateway
table.expression: Expression
table.types: DataType
util.api_stability_decorators: PublicEvolving
util.java_utils: to_jarray
[table.serializers]
.: ArrowSerializer
serializers: IterableSerializer
table.utils: arrow_to_pandas pandas_to_arrow
util.api_stability_decorators: Internal
[table.sql_dialect]
.: SqlDialect
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
[table.statement_set]
.: StatementSet
java_gateway: get_gateway
table.compiled_plan: CompiledPlan
table.explain_detail: ExplainDetail
table.table_descriptor: TableDescriptor
table.table_pipeline: TablePipeline
table.table_result: TableResult
util.api_stability_decorators: PublicEvolving
util.java_utils: to_j_explain_detail_arr
[table.table]
.: AggregatedTable FlatAggregateTable GroupWindowedTable GroupedTable OverWindowedTable Table WindowGroupedTable
java_gateway: get_gateway
table.catalog: ResolvedSchema
table.explain_detail: ExplainDetail
table.expression: Expression
table.expressions: col with_columns without_columns
table.serializers: ArrowSerializer
table.table_descriptor: TableDescriptor
table.table_pipeline: TablePipeline
table.table_result: TableResult
table.table_schema: TableSchema
table.types: create_arrow_schema
table.udf: UserDefinedAggregateFunctionWrapper UserDefinedScalarFunctionWrapper UserDefinedTableFunctionWrapper
table.utils: to_expression_jarray tz_convert_from_internal
table.window: GroupWindow OverWindow
util.api_stability_decorators: Deprecated PublicEvolving
util.java_utils: to_j_explain_detail_arr to_jarray
[table.table_config]
.: TableConfig
common.configuration: Configuration
java_gateway: get_gateway
table.sql_dialect: SqlDialect
util.api_stability_decorators: Internal PublicEvolving
util.java_utils: add_jars_to_context_class_loader
[table.table_descriptor]
.: FormatDescriptor TableDescriptor
common.config_options: ConfigOption
java_gateway: get_gateway
table.schema: Schema
util.api_stability_decorators: PublicEvolving
util.java_utils: to_jarray
[table.table_environment]
.: StreamTableEnvironment TableEnvironment
common.configuration: Configuration
common.typeinfo: TypeInformation
datastream.data_stream: DataStream
datastream.stream_execution_environment: StreamExecutionEnvironment
java_gateway: get_gateway
serializers: BatchedSerializer PickleSerializer
table.catalog: Catalog CatalogDescriptor
table.changelog_mode: ChangelogMode
table.compiled_plan: CompiledPlan
table.environment_settings: EnvironmentSettings
table.explain_detail: ExplainDetail
table.expression: Expression
table.model_descriptor: ModelDescriptor
table.module: Module ModuleEntry
table.plan_reference: PlanReference
table.schema: Schema
table.serializers: ArrowSerializer
table.statement_set: StatementSet
table.table: Table
table.table_config: TableConfig
table.table_descriptor: TableDescriptor
table.table_result: TableResult
table.types: DataType RowField RowType create_arrow_schema from_arrow_type
table.udf: AggregateFunction TableAggregateFunction UserDefinedFunctionWrapper udaf udtaf
table.utils: to_expression_jarray
util.api_stability_decorators: Deprecated PublicEvolving
util.java_utils: get_field get_j_env_configuration is_local_deployment load_java_class to_j_explain_detail_arr to_jarray
[table.table_pipeline]
.: TablePipeline
java_gateway: get_gateway
table.catalog: ObjectIdentifier
table.compiled_plan: CompiledPlan
table.explain_detail: ExplainDetail
table.table_result: TableResult
util.api_stability_decorators: PublicEvolving
util.java_utils: to_j_explain_detail_arr
[table.table_result]
.: CloseableIterator TableResult
common.job_client: JobClient
common.types: Row RowKind
java_gateway: get_gateway
table.catalog: ResolvedSchema
table.result_kind: ResultKind
table.table_schema: TableSchema
table.utils: pickled_bytes_to_python_converter
util.api_stability_decorators: Deprecated PublicEvolving
[table.table_schema]
.: TableSchema
java_gateway: get_gateway
table.types: DataType RowType
util.api_stability_decorators: Deprecated
util.java_utils: to_jarray
[table.types]
.: ArrayType AtomicType BigIntType BinaryType BooleanType CharType DataType DataTypes DateType DayTimeIntervalType DecimalType DoubleType FloatType FractionalType IntType IntegralType ListViewType LocalZonedTimestampType MapType MapViewType MultisetType NullType NumericType RawType Resolution RowField RowType SmallIntType TimeType TimestampType TinyIntType UserDefinedType VarBinaryType VarCharType YearMonthIntervalType ZonedTimestampType create_arrow_schema from_arrow_type size to_arrow_type
common.types: Row RowKind
java_gateway: get_gateway
util.api_stability_decorators: PublicEvolving
util.java_utils: is_instance_of to_jarray
[table.udf]
.: AggregateFunction AsyncScalarFunction DelegatingAsyncScalarFunction DelegatingPandasAggregateFunction DelegatingScalarFunction DelegationTableFunction FunctionContext ImperativeAggregateFunction PandasAggregateFunctionWrapper ScalarFunction TableAggregateFunction TableFunction UserDefinedAggregateFunctionWrapper UserDefinedAsyncScalarFunctionWrapper UserDefinedFunction UserDefinedFunctionWrapper UserDefinedScalarFunctionWrapper UserDefinedTableFunctionWrapper udaf udf udtaf udtf
java_gateway: get_gateway
metrics.metricbase: MetricGroup
table.expression: Expression
table.types: DataType
typing: ACC T
util.api_stability_decorators: Internal PublicEvolving
[table.utils]
.: arrow_to_pandas pandas_to_arrow pickled_bytes_to_python_converter to_expression_jarray tz_convert_from_internal tz_convert_to_internal
common.types: Row RowKind
java_gateway: get_gateway
table.types: ArrayType DataType DateType FloatType LocalZonedTimestampType MapType RawType RowType TimeType TimestampType
util.api_stability_decorators: Internal
util.java_utils: to_jarray
[table.window]
.: GroupWindow Over OverWindow OverWindowPartitioned OverWindowPartitionedOrdered OverWindowPartitionedOrderedPreceding Session SessionWithGap SessionWithGapOnTime Slide SlideWithSize SlideWithSizeAndSlide SlideWithSizeAndSlideOnTime Tumble TumbleWithSize TumbleWithSizeOnTime
java_gateway: get_gateway
table.expression: Expression
table.utils: to_expression_jarray
util.api_stability_decorators: PublicEvolving
[util]
[util.api_stability_decorators]
.: BaseAPIStabilityDecorator Deprecated Experimental Internal Public PublicEvolving
typing: T
[util.exceptions]
.: CatalogException DatabaseAlreadyExistException DatabaseNotEmptyException DatabaseNotExistException FunctionAlreadyExistException FunctionNotExistException JavaException ModelAlreadyExistException ModelNotExistException PartitionAlreadyExistsException PartitionNotExistException PartitionSpecInvalidException TableAlreadyExistException TableException TableNotExistException TableNotPartitionedException capture_java_exception convert_py4j_exception install_exception_handler install_py4j_hooks
[util.java_utils]
.: add_jars_to_context_class_loader create_url_class_loader from_j_duration get_field get_field_value get_j_env_configuration invoke_method is_instance_of is_local_deployment load_java_class to_j_duration to_j_explain_detail_arr to_jarray
java_gateway: get_gateway
[version]
"""
