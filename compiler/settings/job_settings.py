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


class JobSettings(BaseModel):
    """What shapes the graph, and how it runs. Each field names the configuration key that sets it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_name: str | None = Field(
        None,
        json_schema_extra={"key": "pipeline.name"},
        description="None: 'Flink Streaming Job' or 'Flink Batch Job'",
    )
    parallelism: int = Field(1, ge=1, json_schema_extra={"key": "parallelism.default"})
    max_parallelism: int = Field(
        -1, ge=-1, le=32768, json_schema_extra={"key": "pipeline.max-parallelism"}
    )
    runtime_mode: Literal["STREAMING", "BATCH", "AUTOMATIC"] = Field(
        "STREAMING", json_schema_extra={"key": "execution.runtime-mode"}
    )
    chaining_enabled: bool = Field(
        True, json_schema_extra={"key": "pipeline.operator-chaining.enabled"}
    )
    chain_different_max_parallelism: bool = Field(
        True,
        json_schema_extra={
            "key": "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
        },
    )
    scheduler: Literal["Default", "Adaptive", "AdaptiveBatch"] | None = Field(
        None, json_schema_extra={"key": "jobmanager.scheduler"}
    )
    auto_parallelism: bool = Field(
        True,
        json_schema_extra={"key": "execution.batch.adaptive.auto-parallelism.enabled"},
    )
    batch_shuffle_mode: BatchShuffleMode = Field(
        "ALL_EXCHANGES_BLOCKING", json_schema_extra={"key": "execution.batch-shuffle-mode"}
    )
    auto_generate_uids: bool = Field(True, json_schema_extra={"key": "pipeline.auto-generate-uids"})
    vertex_name_index_prefix: bool = Field(
        False, json_schema_extra={"key": "pipeline.vertex-name-include-index-prefix"}
    )
    vertex_description_mode: Literal["TREE", "CASCADING"] = Field(
        "TREE", json_schema_extra={"key": "pipeline.vertex-description-mode"}
    )
    object_reuse: bool = Field(False, json_schema_extra={"key": "pipeline.object-reuse"})
    buffer_timeout_ms: int = Field(
        100, ge=-1, json_schema_extra={"key": "execution.buffer-timeout.interval"}
    )
    auto_watermark_interval_ms: int = Field(
        200, ge=0, json_schema_extra={"key": "pipeline.auto-watermark-interval"}
    )
    latency_interval_ms: int = Field(
        0,
        json_schema_extra={"key": "metrics.latency.interval"},
        description="0 or less: sources send no latency markers",
    )
    target: Literal["spark", "local"] = Field(
        "spark", json_schema_extra={"key": "execution.target"}
    )
    checkpoint_dir: str | None = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.dir"},
        description="None: unbounded jobs keep theirs in a temporary folder, and can't go on later",
    )
    checkpoint_key_file: str | None = Field(
        None,
        json_schema_extra={"key": "execution.checkpointing.key-file"},
        description="a file with a key that signs checkpoints; those that it did not sign are refused",
    )
    checkpoint_interval_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.interval"},
        description="from the begin of an epoch to the next; 0: as soon as there is something to do",
    )
    checkpoint_min_pause_ms: int = Field(
        0,
        ge=0,
        json_schema_extra={"key": "execution.checkpointing.min-pause"},
        description="from the end of an epoch to the next one",
    )
    retained_checkpoints: int = Field(
        1, ge=1, json_schema_extra={"key": "execution.checkpointing.num-retained"}
    )
    tolerable_checkpoint_failures: int = Field(
        0, ge=0, json_schema_extra={"key": "execution.checkpointing.tolerable-failed-checkpoints"}
    )
    restore_from: str | None = Field(
        None,
        json_schema_extra={"key": "execution.state-recovery.path"},
        description="a checkpoint or savepoint to start from",
    )
    allow_non_restored_state: bool = Field(
        False, json_schema_extra={"key": "execution.state-recovery.ignore-unclaimed-state"}
    )
    trigger: Literal["processing-time", "available-now", "once"] = Field(
        "processing-time",
        json_schema_extra={"key": "opchain.streaming.trigger"},
        description="when epochs of an unbounded job begin",
    )
    record_epochs: bool = Field(
        False,
        json_schema_extra={"key": "opchain.streaming.record-epochs"},
        description="whether checkpoints keep what `opchain replay` needs to run their epochs again",
    )
    progress_log: str | None = Field(
        None,
        json_schema_extra={"key": "opchain.streaming.progress-log"},
        description="a file that gets a line of JSON for each epoch of an unbounded job",
    )
    state_backend: Literal["hashmap", "rocksdb"] = Field(
        "hashmap",
        json_schema_extra={"key": "state.backend.type"},
        description="where keyed state is: in memory, or on the executors' disks",
    )
    state_folders: str | None = Field(
        None,
        json_schema_extra={"key": "state.backend.rocksdb.localdir"},
        description="folders on the executors' disks, between commas; None: Spark's own",
    )
    generate_code: bool = Field(True, json_schema_extra={"key": "opchain.codegen.enabled"})
    inline_functions: bool = Field(True, json_schema_extra={"key": "opchain.codegen.inline"})
    batch_size: int = Field(4096, ge=1, json_schema_extra={"key": "opchain.batch-size"})
    python_files: str | None = Field(
        None, json_schema_extra={"key": "python.files"}, description="paths between commas"
    )
    python_archives: str | None = Field(
        None,
        json_schema_extra={"key": "python.archives"},
        description="path or path#folder, between commas",
    )
    python_requirements: str | None = Field(
        None,
        json_schema_extra={"key": "python.requirements"},
        description="path of a requirements.txt, maybe with #folder of packages",
    )
    python_executable: str | None = Field(None, json_schema_extra={"key": "python.executable"})
    jars: str | None = Field(
        None, json_schema_extra={"key": "pipeline.jars"}, description="URLs between semicolons"
    )
    classpaths: str | None = Field(
        None, json_schema_extra={"key": "pipeline.classpaths"}, description="as for pipeline.jars"
    )
    job_parameters: dict[str, Any] = Field(
        default_factory=dict, json_schema_extra={"key": "pipeline.global-job-parameters"}
    )
