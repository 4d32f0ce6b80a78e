from __future__ import annotations

from opchain.runtime.functions.process_functions import TimerService


def test_a_timer_service_has_methods_for_both_clocks_and_their_timers() -> None:
    assert TimerService.__abstractmethods__ == {
        "current_processing_time",
        "current_watermark",
        "register_processing_time_timer",
        "register_event_time_timer",
        "delete_processing_time_timer",
        "delete_event_time_timer",
    }
