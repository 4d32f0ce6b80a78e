"""The checked settings of one job. The passes read them, and no global state."""

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


def _setting(key: str, default: Any, description: str, **limits: Any) -> Any:
    """A field that a configuration key sets. `limits` are passed to pydantic's `Field`."""
    return Field(default, json_schema_extra={"key": key}, description=description, **limits)


class JobSettings(BaseModel):
    """The settings of a job. Each field names its configuration key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_name: str | None = _setting(
        "pipeline.name",
        None,
        "The name of the job. Not set: the name passed to `execute()`, else `Flink Streaming Job` or `Flink Batch Job`.",
    )
    parallelism: int = _setting(
        "parallelism.default", 1, "The number of subtasks of an operator that sets none.", ge=1
    )
    max_parallelism: int = _setting(
        "pipeline.max-parallelism",
        -1,
        "The number of key groups; -1 derives it from the parallelism, as Flink does.",
        ge=-1,
        le=32768,
    )
    runtime_mode: Literal["STREAMING", "BATCH", "AUTOMATIC"] = _setting(
        "execution.runtime-mode",
        "STREAMING",
        "BATCH sorts the input of keyed operators by key and time. AUTOMATIC picks BATCH if all sources are bounded.",
    )
    chaining_enabled: bool = _setting(
        "pipeline.operator-chaining.enabled",
        True,
        "Whether operators are chained: they then run in one task.",
    )
    chain_different_max_parallelism: bool = _setting(
        "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
        True,
        "Whether operators with different max parallelism may be chained.",
    )
    scheduler: Literal["Default", "Adaptive", "AdaptiveBatch"] | None = _setting(
        "jobmanager.scheduler",
        None,
        "The scheduler that Flink would use. Some chaining rules of batch jobs depend on it.",
    )
    auto_parallelism: bool = _setting(
        "execution.batch.adaptive.auto-parallelism.enabled",
        True,
        "Whether the adaptive batch scheduler may choose a parallelism. Some chaining rules depend on it.",
    )
    batch_shuffle_mode: BatchShuffleMode = _setting(
        "execution.batch-shuffle-mode",
        "ALL_EXCHANGES_BLOCKING",
        "How the vertices of a batch job exchange records in Flink: while they run (pipelined), or when the sender has ended (blocking). It changes the plan and chaining; on Spark, every exchange is blocking.",
    )
    auto_generate_uids: bool = _setting(
        "pipeline.auto-generate-uids", True, "If false, every operator needs a uid."
    )
    vertex_name_index_prefix: bool = _setting(
        "pipeline.vertex-name-include-index-prefix",
        False,
        "Whether names of vertices start with `[vertex-N]`.",
    )
    vertex_description_mode: Literal["TREE", "CASCADING"] = _setting(
        "pipeline.vertex-description-mode",
        "TREE",
        "How the description of a vertex lists its operators.",
    )
    object_reuse: bool = _setting(
        "pipeline.object-reuse",
        False,
        "Whether chained operators share records. If false, records are copied where sharing would be visible.",
    )
    buffer_timeout_ms: int = _setting(
        "execution.buffer-timeout.interval",
        100,
        "How long a buffer may wait before it is sent; -1 sends only full buffers. Bounded jobs ignore values above 0.",
        ge=-1,
    )
    auto_watermark_interval_ms: int = _setting(
        "pipeline.auto-watermark-interval",
        200,
        "0 emits no periodic watermarks. Other values emit one after each batch.",
        ge=0,
    )
    table_idle_timeout_ms: int = _setting(
        "table.exec.source.idle-timeout",
        0,
        "The time without rows after which a table with a watermark is idle: it no longer holds back the watermarks of operators downstream. 0: never.",
        ge=0,
    )
    latency_interval_ms: int = _setting(
        "metrics.latency.interval", 0, "How often sources emit latency markers. 0 or less: never."
    )
    target: Literal["spark", "local"] = _setting(
        "execution.target", "spark", "Where the job runs: on Spark or in this process."
    )
    checkpoint_dir: str | None = _setting(
        "execution.checkpointing.dir",
        None,
        "The directory of the checkpoints. Not set: unbounded jobs use a temporary folder and cannot resume later.",
    )
    checkpoint_key_file: str | None = _setting(
        "execution.checkpointing.key-file",
        None,
        "A file with a key. Checkpoints are signed with it, and a checkpoint that it did not sign is refused.",
    )
    checkpoint_interval_ms: int = _setting(
        "execution.checkpointing.interval",
        0,
        "The time from the start of an epoch to the start of the next one. 0: the next epoch starts as soon as there is input.",
        ge=0,
    )
    checkpoint_min_pause_ms: int = _setting(
        "execution.checkpointing.min-pause",
        0,
        "The minimum pause between the end of an epoch and the start of the next.",
        ge=0,
    )
    checkpoint_timeout_ms: int = _setting(
        "execution.checkpointing.timeout",
        0,
        "The time after which the checkpoint of an epoch fails. The driver then aborts the epoch, and retries it as often as "
        "`execution.checkpointing.tolerable-failed-checkpoints` says. 0: no limit. The time includes the processing of the "
        "epoch's input, so the default is 0, unlike in Flink.",
        ge=0,
    )
    checkpoint_retention: (
        Literal["RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"]
        | None
    ) = _setting(
        "execution.checkpointing.externalized-checkpoint-retention",
        None,
        "Whether checkpoints are deleted when the job ends. `DELETE_ON_CANCELLATION` keeps them if the job fails, "
        "`RETAIN_ON_CANCELLATION` also if it is cancelled, `NO_EXTERNALIZED_CHECKPOINTS` never. By default, they "
        "are kept always, so that the job can be started again.",
    )
    retained_checkpoints: int = _setting(
        "execution.checkpointing.num-retained", 1, "How many completed checkpoints are kept.", ge=1
    )
    tolerable_checkpoint_failures: int = _setting(
        "execution.checkpointing.tolerable-failed-checkpoints",
        0,
        "How many times in a row the epoch of a failed checkpoint is retried.",
        ge=0,
    )
    savepoint_directory: str | None = _setting(
        "execution.checkpointing.savepoint-dir",
        None,
        "The directory of savepoints if a command or call names none.",
    )
    savepoint_at_end: str | None = _setting(
        "opchain.savepoint-at-end",
        None,
        "The directory of a savepoint that a bounded job writes at the end of its input. Open windows do not fire, and a job that starts from the savepoint continues them.",
    )
    restart_strategy: RestartStrategyName | None = _setting(
        "restart-strategy.type",
        None,
        "How a failed job is restarted: an unbounded job from its last checkpoint, a bounded job from the beginning. Not set: the first failure ends the job. (Flink's default with checkpoints is exponential-delay.)",
    )
    fixed_delay_attempts: int = _setting(
        "restart-strategy.fixed-delay.attempts",
        1,
        "How many times a failed job is restarted.",
        ge=0,
    )
    fixed_delay_ms: int = _setting(
        "restart-strategy.fixed-delay.delay", 1000, "The pause before each restart.", ge=0
    )
    failure_rate_attempts: int = _setting(
        "restart-strategy.failure-rate.max-failures-per-interval",
        1,
        "How many failures per interval are tolerated.",
        ge=0,
    )
    failure_rate_interval_ms: int = _setting(
        "restart-strategy.failure-rate.failure-rate-interval",
        60_000,
        "The interval over which failures are counted.",
        ge=1,
    )
    failure_rate_delay_ms: int = _setting(
        "restart-strategy.failure-rate.delay", 1000, "The pause before each restart.", ge=0
    )
    exponential_delay_attempts: int = _setting(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        2**31 - 1,
        "How many times a job is restarted before it fails.",
        ge=0,
    )
    exponential_delay_initial_ms: int = _setting(
        "restart-strategy.exponential-delay.initial-backoff",
        1000,
        "The pause before the first restart.",
        ge=1,
    )
    exponential_delay_most_ms: int = _setting(
        "restart-strategy.exponential-delay.max-backoff",
        60_000,
        "The longest pause before a restart.",
        ge=1,
    )
    exponential_delay_multiplier: float = _setting(
        "restart-strategy.exponential-delay.backoff-multiplier",
        1.5,
        "The factor by which the pause grows with each restart.",
        gt=1,
    )
    exponential_delay_reset_ms: int = _setting(
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        3_600_000,
        "How long a job must run without a failure to reset the pause.",
        ge=1,
    )
    exponential_delay_jitter: float = _setting(
        "restart-strategy.exponential-delay.jitter-factor",
        0.1,
        "The random share that is added to or taken from each pause.",
        ge=0,
        le=1,
    )
    restore_from: str | None = _setting(
        "execution.state-recovery.path", None, "The checkpoint or savepoint to start from."
    )
    allow_non_restored_state: bool = _setting(
        "execution.state-recovery.ignore-unclaimed-state",
        False,
        "Whether state that no operator claims may be discarded on restore.",
    )
    trigger: Literal["processing-time", "available-now", "once"] = _setting(
        "opchain.streaming.trigger",
        "processing-time",
        "`processing-time` runs until the job is stopped; `available-now` reads the input that exists at the start, and ends; `once` runs one epoch.",
    )
    record_epochs: bool = _setting(
        "opchain.streaming.record-epochs",
        False,
        "Whether checkpoints store the input that `opchain replay` needs.",
    )
    accept_duplicates: bool = _setting(
        "opchain.streaming.accept-duplicates",
        False,
        "Whether a job starts if its sinks have committed later checkpoints than the job's last one. It then writes "
        "the output of these checkpoints a second time.",
    )
    target_epoch_ms: int = _setting(
        "opchain.streaming.target-epoch-duration",
        0,
        "How long an epoch should take. Sources give it as much input as earlier epochs could read in that time. With 0, watched folders use 10 s, and other sources have limits of their own.",
        ge=0,
    )
    progress_log: str | None = _setting(
        "opchain.streaming.progress-log",
        None,
        "A file to which each epoch appends one line of JSON.",
    )
    prometheus_address: str | None = _setting(
        "opchain.metrics.prometheus.address",
        None,
        "HOST:PORT where Prometheus can read the metrics while a job runs, such as `0.0.0.0:9249`.",
    )
    prometheus_textfile: str | None = _setting(
        "opchain.metrics.prometheus.textfile",
        None,
        "A file that gets the metrics in Prometheus' text format, for the textfile collector of node_exporter.",
    )
    otlp_endpoint: str | None = _setting(
        "opchain.metrics.otlp.endpoint",
        None,
        "The URL of an OTLP receiver that gets metrics, and a trace for each epoch, such as `http://collector:4318`.",
    )
    spark_metrics: bool = _setting(
        "opchain.metrics.spark",
        False,
        "Whether the metrics appear in the metrics system of Spark's driver, below `AccumulatorSource`.",
    )
    metrics_interval_ms: int = _setting(
        "opchain.metrics.interval",
        10_000,
        "How often metrics are sent or written while an epoch or a bounded job runs. They are also sent at the end of each epoch.",
        ge=100,
    )
    openlineage_url: str | None = _setting(
        "opchain.openlineage.url",
        None,
        "The URL of the server that gets OpenLineage events. `env` uses the server of OPENLINEAGE_URL or openlineage.yml.",
    )
    openlineage_namespace: str = _setting(
        "opchain.openlineage.namespace",
        "opchain",
        "The namespace of the job in OpenLineage events.",
    )
    state_backend: str = _setting(
        "state.backend.type",
        "hashmap",
        "Where keyed state is kept: `hashmap` in memory, `rocksdb` on the disks of the executors, `module.Class` in a state backend that you have written.",
        pattern=r"^(hashmap|rocksdb|[^\W\d]\w*(\.[^\W\d]\w*)+)$",
    )
    state_folders: str | None = _setting(
        "state.backend.rocksdb.localdir",
        None,
        "Folders for RocksDB on the executors, separated by commas. Not set: Spark's local folders.",
    )
    generate_code: bool = _setting(
        "opchain.codegen.enabled",
        True,
        "Whether chains become generated functions. If false, operators are interpreted.",
    )
    inline_functions: bool = _setting(
        "opchain.codegen.inline",
        True,
        "Whether user functions are inlined into the generated code. If false, each function is called once per record.",
    )
    rules_left_out: str = _setting(
        "opchain.codegen.without",
        "",
        "Rewrite rules of the code generator that are not applied, separated by commas. `opchain code --help` lists them.",
    )
    batch_size: int = _setting(
        "opchain.batch-size",
        4096,
        "The number of records that a source reads at once. A batch after an exchange may have more records.",
        ge=1,
    )
    python_files: str | None = _setting(
        "python.files", None, "Python files for the executors, separated by commas."
    )
    python_archives: str | None = _setting(
        "python.archives",
        None,
        "Archives for the executors, as `path` or `path#folder`, separated by commas.",
    )
    python_requirements: str | None = _setting(
        "python.requirements",
        None,
        "The path of a requirements.txt, optionally with `#folder` of downloaded packages.",
    )
    python_executable: str | None = _setting(
        "python.executable", None, "The Python interpreter of the executors."
    )
    jars: str | None = _setting("pipeline.jars", None, "URLs of jars, separated by semicolons.")
    classpaths: str | None = _setting(
        "pipeline.classpaths", None, "URLs for the class path, separated by semicolons."
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
    generic_types: bool = _setting(
        "pipeline.generic-types",
        True,
        "Whether records without a declared type may be pickled on their way to another task. If false, such a "
        "program is refused.",
    )
