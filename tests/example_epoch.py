"""An epoch report as listeners get it."""

from __future__ import annotations

from opchain.runtime.epochs.epoch_progress import EpochProgress

PROGRESS = EpochProgress(
    job="words",
    run_id="run",
    epoch=1,
    batch=0,
    timestamp_ms=1_000,
    duration_ms=20.5,
    durations_ms={"waiting": 1.0, "tasks": 20.5},
    records_in=2,
    records_out=2,
    watermark=None,
    watermark_lag_ms=None,
    state_entries=0,
    state_bytes=0,
    written_bytes=0,
    next_timer_ms=None,
    checkpoint="place/chk-1",
    vertices=(),
)
