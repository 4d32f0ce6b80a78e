from __future__ import annotations

from opchain.runtime.epochs.epoch_progress import PhaseClock


def test_phases_cover_the_time_from_one_epoch_to_the_next() -> None:
    ticks = iter([10.0, 12.0, 12.5, 13.0, 20.0])
    phases = PhaseClock(lambda: next(ticks))
    phases.begin_epoch()
    phases.end_phase("waiting")
    phases.end_phase("tasks")
    phases.end_phase("tasks")
    assert phases.durations_ms == {"waiting": 2000.0, "tasks": 1000.0}
    phases.begin_epoch()
    phases.end_phase("waiting")
    assert phases.durations_ms == {"waiting": 7000.0}
