"""The settings of one job, checked: what the passes read instead of any global state."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

BatchShuffleMode = Literal[
    "ALL_EXCHANGES_PIPELINED",
    "ALL_EXCHANGES_BLOCKING",
    "ALL_EXCHANGES_HYBRID_FULL",
    "ALL_EXCHANGES_HYBRID_SELECTIVE",
]


RestartStrategyName = Literal[
    "none",
    "off",
    "disable",
    "fixed-delay",
    "fixeddelay",
    "failure-rate",
    "failurerate",
    "exponential-delay",
    "exponentialdelay",
]


class JobSettings(BaseModel):
    """What shapes the graph, and how it runs. Each field names the configuration key that sets it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_name: str | None = Field(
        None,
        json_schema_extra={"key": "pipeline.name"},
        description="The name of the job. Not set: the name passed to `execute()`, else `Flink Streaming Job` or `Flink Batch Job`.",
    )
    parallelism: int = Field(
        1,
        ge=1,
        json_schema_extra={"key": "parallelism.default"},
        description="The number of subtasks of an operator that sets none.",
    )
    max_parallelism: int = Field(
        -1,
        ge=-1,
        le=32768,
        json_schema_extra={"key": "pipeline.max-parallelism"},
        description="The number of key groups; -1 derives it from the parallelism, as Flink does.",
    )
    runtime_mode: Literal["STREAMING", "BATCH", "AUTOMATIC"] = Field(
        "STREAMING",
        json_schema_extra={"key": "execution.runtime-mode"},
        description="BATCH sorts the input of keyed operators by key and time; AUTOMATIC picks BATCH if all sources are bounded.",
    )
    chaining_enabled: bool = Field(
        True,
        json_schema_extra={"key": "pipeline.operator-chaining.enabled"},
        description="Whether operators are fused into chains.",
    )
    chain_different_max_parallelism: bool = Field(
        True,
        json_schema_extra={
            "key": "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
        },
        description="Whether operators with different max parallelism may be chained.",
    )
    scheduler: Literal["Default", "Adaptive", "AdaptiveBatch"] | None = Field(
        None,
        json_schema_extra={"key": "jobmanager.scheduler"},
        description="Flink's scheduler. It decides some chaining rules of batch jobs.",
    )
    auto_parallelism: bool = Field(
        True,
        json_schema_extra={"key": "execution.batch.adaptive.auto-parallelism.enabled"},
        description="Whether the adaptive batch scheduler may choose a parallelism. It decides some chaining rules.",
    )
    batch_shuffle_mode: BatchShuffleMode = Field(
        "ALL_EXCHANGES_BLOCKING",
        json_schema_extra={"key": "execution.batch-shuffle-mode"},
        description="The kind of data sets between the vertices of a batch job.",
    )
    auto_generate_uids: bool = Field(
        True,
        json_schema_extra={"key": "pipeline.auto-generate-uids"},
        description="If false, every operator needs a uid.",
    )
    vertex_name_index_prefix: bool = Field(
        False,
        json_schema_extra={"key": "pipeline.vertex-name-include-index-prefix"},
        description="Whether names of vertices start with `[vertex-N]`.",
    )
    vertex_description_mode: Literal["TREE", "CASCADING"] = Field(
        "TREE",
        json_schema_extra={"key": "pipeline.vertex-description-mode"},
        description="How the description of a vertex lists its operators.",
    )
    object_reuse: bool = Field(
        False,
        json_schema_extra={"key": "pipeline.object-reuse"},
        description="Whether chained operators share records. If false, records are copied where sharing would be visible.",
    )
    buffer_timeout_ms: int = Field(
        100,
        ge=-1,
        json_schema_extra={"key": "execution.buffer-timeout.interval"},
        description="How long a buffer may wait before it is sent; -1 sends only full buffers. Bounded jobs ignore values above 0.",
    )
    auto_watermark_interval_ms: int = Field(
        200,
        ge=0,
        json_schema_extra={"key": "pipeline.auto-watermark-interval"},
        description="0 emits no periodic watermarks. Other values emit one after each batch.",
    )
    latency_interval_ms: int = Field(
        0,
        json_schema_extra={"key": "metrics.latency.interval"},
        description="How often sources emit latency markers. 0 or less: never.",
    )
    target: Literal["spark", "local"] = Field(
        "spark",
        json_schema_extra={"key": "execution.target"},
        description="Where the job runs: on Spark or in this process.",
    )
    checkpoint_dir: str | None = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.dir"},
        description="The directory of the checkpoints. Not set: unbounded jobs use a temporary folder and cannot resume later.",
    )
    checkpoint_key_file: str | None = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.key-file"},
        description="A file with a key. Checkpoints are signed with it, and a checkpoint that it did not sign is refused.",
    )
    checkpoint_interval_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.interval"},
        description="From the start of an epoch to the start of the next. 0: the next epoch starts when there is input.",
    )
    checkpoint_min_pause_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.min-pause"},
        description="The minimum pause between the end of an epoch and the start of the next.",
    )
    checkpoint_timeout_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.timeout"},
        description="After how long the checkpoint of an epoch fails. The epoch is aborted and retried as often as "
        "`execution.checkpointing.tolerable-failed-checkpoints` says. An epoch contains its processing, so 0 for no limit is the "
        "default, unlike in Flink.",
    )
    checkpoint_retention: (
        Literal["RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"]
        | None
    ) = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.externalized-checkpoint-retention"},
        description="Whether checkpoints are deleted when the job ends. `DELETE_ON_CANCELLATION` keeps them if the job fails, "
        "`RETAIN_ON_CANCELLATION` also if it is cancelled, `NO_EXTERNALIZED_CHECKPOINTS` never. By default, they "
        "are kept always, so that the job can be started again.",
    )
    retained_checkpoints: int = Field(
        1,
        ge=1,
        json_schema_extra={"key": "execution.checkpointing.num-retained"},
        description="How many completed checkpoints are kept.",
    )
    tolerable_checkpoint_failures: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.tolerable-failed-checkpoints"},
        description="How many times in a row the epoch of a failed checkpoint is retried.",
    )
    savepoint_directory: str | None = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.savepoint-dir"},
        description="The directory of savepoints for which none is given.",
    )
    savepoint_at_end: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.savepoint-at-end"},
        description="The directory for the state that a bounded job on Spark has at the end of its input. Windows that are open stay open, and a job that starts from the savepoint continues them.",
    )
    restart_strategy: RestartStrategyName | None = Field(
        None,
        json_schema_extra={"key": "restart-strategy.type"},
        description="How a failed unbounded job is restarted. Not set: the first failure ends the job. (Flink's default with checkpoints is exponential-delay.)",
    )
    fixed_delay_attempts: int = Field(
        1,
        ge=0,
        json_schema_extra={"key": "restart-strategy.fixed-delay.attempts"},
        description="How many times a failed job is restarted.",
    )
    fixed_delay_ms: int = Field(
        1000,
        ge=0,
        json_schema_extra={"key": "restart-strategy.fixed-delay.delay"},
        description="The pause before each restart.",
    )
    failure_rate_attempts: int = Field(
        1,
        ge=0,
        json_schema_extra={"key": "restart-strategy.failure-rate.max-failures-per-interval"},
        description="How many failures per interval are tolerated.",
    )
    failure_rate_interval_ms: int = Field(
        60_000,
        ge=1,
        json_schema_extra={"key": "restart-strategy.failure-rate.failure-rate-interval"},
        description="The interval over which failures are counted.",
    )
    failure_rate_delay_ms: int = Field(
        1000,
        ge=0,
        json_schema_extra={"key": "restart-strategy.failure-rate.delay"},
        description="The pause before each restart.",
    )
    exponential_delay_attempts: int = Field(
        2**31 - 1,
        ge=0,
        json_schema_extra={
            "key": "restart-strategy.exponential-delay.attempts-before-reset-backoff"
        },
        description="How many times a job is restarted before it fails.",
    )
    exponential_delay_initial_ms: int = Field(
        1000,
        ge=1,
        json_schema_extra={"key": "restart-strategy.exponential-delay.initial-backoff"},
        description="The pause before the first restart.",
    )
    exponential_delay_most_ms: int = Field(
        60_000,
        ge=1,
        json_schema_extra={"key": "restart-strategy.exponential-delay.max-backoff"},
        description="The longest pause before a restart.",
    )
    exponential_delay_multiplier: float = Field(
        1.5,
        gt=1,
        json_schema_extra={"key": "restart-strategy.exponential-delay.backoff-multiplier"},
        description="The factor by which the pause grows with each restart.",
    )
    exponential_delay_reset_ms: int = Field(
        3_600_000,
        ge=1,
        json_schema_extra={"key": "restart-strategy.exponential-delay.reset-backoff-threshold"},
        description="How long a job must run without a failure to reset the pause.",
    )
    exponential_delay_jitter: float = Field(
        0.1,
        ge=0,
        le=1,
        json_schema_extra={"key": "restart-strategy.exponential-delay.jitter-factor"},
        description="The random share that is added to or taken from each pause.",
    )
    restore_from: str | None = Field(
        None,
        json_schema_extra={"key": "execution.state-recovery.path"},
        description="The checkpoint or savepoint to start from.",
    )
    allow_non_restored_state: bool = Field(
        False,
        json_schema_extra={"key": "execution.state-recovery.ignore-unclaimed-state"},
        description="Whether state that no operator claims may be discarded on restore.",
    )
    trigger: Literal["processing-time", "available-now", "once"] = Field(
        "processing-time",
        json_schema_extra={"key": "opchain.streaming.trigger"},
        description="`processing-time` runs until the job is stopped; `available-now` reads what is there and ends; `once` runs one epoch.",
    )
    record_epochs: bool = Field(
        False,
        json_schema_extra={"key": "opchain.streaming.record-epochs"},
        description="Whether checkpoints store the input that `opchain replay` needs.",
    )
    accept_duplicates: bool = Field(
        False,
        json_schema_extra={"key": "opchain.streaming.accept-duplicates"},
        description="whether a job starts if its sinks have committed later checkpoints than the last one, and "
        "writes their output again",
    )
    target_epoch_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "opchain.streaming.target-epoch-duration"},
        description="How long an epoch should take. Sources give it as much input as earlier epochs could read in that time. With 0, watched folders use 10 s, and other sources have limits of their own.",
    )
    progress_log: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.streaming.progress-log"},
        description="A file to which each epoch appends one line of JSON.",
    )
    prometheus_address: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.metrics.prometheus.address"},
        description="HOST:PORT where Prometheus can read the metrics while a job runs, such as `0.0.0.0:9249`.",
    )
    prometheus_textfile: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.metrics.prometheus.textfile"},
        description="A file that gets the metrics in Prometheus' text format, for the textfile collector of node_exporter.",
    )
    otlp_endpoint: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.metrics.otlp.endpoint"},
        description="The URL of an OTLP receiver that gets metrics, and a trace for each epoch, such as `http://collector:4318`.",
    )
    spark_metrics: bool = Field(
        False,
        json_schema_extra={"key": "opchain.metrics.spark"},
        description="Whether the metrics appear in the metrics system of Spark's driver, below `AccumulatorSource`.",
    )
    metrics_interval_ms: int = Field(
        10_000,
        ge=100,
        json_schema_extra={"key": "opchain.metrics.interval"},
        description="How often metrics are sent or written while nothing ends; the end of an epoch sends them, too.",
    )
    openlineage_url: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.openlineage.url"},
        description="The server that gets OpenLineage events, or `env`: as OPENLINEAGE_URL and openlineage.yml say.",
    )
    openlineage_namespace: str = Field(
        "opchain",
        json_schema_extra={"key": "opchain.openlineage.namespace"},
        description="The namespace of the job in OpenLineage events.",
    )
    state_backend: str = Field(
        "hashmap",
        pattern=r"^(hashmap|rocksdb|[^\W\d]\w*(\.[^\W\d]\w*)+)$",
        json_schema_extra={"key": "state.backend.type"},
        description="Where keyed state is kept: `hashmap` in memory, `rocksdb` on the disks of the executors, `module.Class` in a backend of your own.",
    )
    state_folders: str | None = Field(
        None,
        json_schema_extra={"key": "state.backend.rocksdb.localdir"},
        description="Folders for RocksDB on the executors, separated by commas. Not set: Spark's local folders.",
    )
    generate_code: bool = Field(
        True,
        json_schema_extra={"key": "opchain.codegen.enabled"},
        description="Whether chains become generated functions. If false, operators are interpreted.",
    )
    inline_functions: bool = Field(
        True,
        json_schema_extra={"key": "opchain.codegen.inline"},
        description="Whether simple lambdas are inlined into the generated code.",
    )
    rules_left_out: str = Field(
        "",
        json_schema_extra={"key": "opchain.codegen.without"},
        description="Rewrite rules that generated code does without, separated by commas. `opchain code --help` lists them.",
    )
    batch_size: int = Field(
        4096,
        ge=1,
        json_schema_extra={"key": "opchain.batch-size"},
        description="The number of records that a generated function processes per call.",
    )
    python_files: str | None = Field(
        None,
        json_schema_extra={"key": "python.files"},
        description="Python files for the executors, separated by commas.",
    )
    python_archives: str | None = Field(
        None,
        json_schema_extra={"key": "python.archives"},
        description="Archives for the executors, as `path` or `path#folder`, separated by commas.",
    )
    python_requirements: str | None = Field(
        None,
        json_schema_extra={"key": "python.requirements"},
        description="The path of a requirements.txt, optionally with `#folder` of downloaded packages.",
    )
    python_executable: str | None = Field(
        None,
        json_schema_extra={"key": "python.executable"},
        description="The Python interpreter of the executors.",
    )
    jars: str | None = Field(
        None,
        json_schema_extra={"key": "pipeline.jars"},
        description="URLs of jars, separated by semicolons.",
    )
    classpaths: str | None = Field(
        None,
        json_schema_extra={"key": "pipeline.classpaths"},
        description="URLs for the class path, separated by semicolons.",
    )
    job_parameters: dict[str, Any] = Field(
        default_factory=dict,
        json_schema_extra={"key": "pipeline.global-job-parameters"},
        description="Parameters that functions read from their runtime context.",
    )
    operators: dict[str, str] = Field(
        default_factory=dict,
        json_schema_extra={"key": "opchain.operator"},
        description="Settings of single operators: `opchain.operator.OPERATOR.SETTING`, where OPERATOR is a uid or a "
        "name. The settings are `parallelism`, `max-parallelism`, `name`, `uid`, `chaining` (`always`, `head` or "
        "`never`), `buffer-timeout` and `slot-sharing-group`. They replace what the program sets. The option "
        "`--set OPERATOR.SETTING=VALUE` of the commands does the same.",
    )
    generic_types: bool = Field(
        True,
        json_schema_extra={"key": "pipeline.generic-types"},
        description="Whether records without a declared type may be pickled on their way to another task. If false, such a "
        "program is refused.",
    )
