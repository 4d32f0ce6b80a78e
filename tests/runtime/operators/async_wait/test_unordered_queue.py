from __future__ import annotations

from element_queue_trace import STEPS, Step, Trace
from hypothesis import given

from opchain.runtime.operators.async_wait.queues import UnorderedQueue


def between_watermarks(kinds: list[str], numbers: list[int]) -> list[set[int] | int]:
    """The numbers in order; those between two watermarks as a set, since their order is free."""
    found: list[set[int] | int] = [set()]
    for number in numbers:
        if kinds[number] == "watermark":
            found += [number, set()]
        else:
            assert isinstance(found[-1], set)
            found[-1].add(number)
    return found


@given(STEPS)
def test_no_record_is_lost_or_passes_a_watermark(steps: list[Step]) -> None:
    trace = Trace(UnorderedQueue())
    trace.run(steps)
    trace.complete_all()
    trace.take_all()
    assert between_watermarks(trace.kinds, trace.left) == between_watermarks(
        trace.kinds, list(range(len(trace.kinds)))
    )
    assert len(trace.queue) == 0


@given(STEPS)
def test_all_complete_elements_up_to_the_next_watermark_are_emitted(steps: list[Step]) -> None:
    trace = Trace(UnorderedQueue())
    trace.run(steps)
    trace.take_all()
    # The model: complete elements up to the first watermark that waits for a record before it.
    expected = set()
    is_held_back = False
    for number, kind in enumerate(trace.kinds):
        if kind == "watermark" and is_held_back:
            break
        if kind == "record" and number not in trace.completed:
            is_held_back = True
        else:
            expected.add(number)
    assert set(trace.left) == expected
    assert len(trace.left) == len(expected)
    assert len(trace.queue) == len(trace.kinds) - len(expected)


def test_records_are_emitted_in_the_order_in_which_their_calls_end() -> None:
    trace = Trace(UnorderedQueue())
    trace.run([("record", 0)] * 3)
    for number in (2, 0, 1):
        trace.complete(number)
    trace.take_all()
    assert trace.left == [2, 0, 1]


def test_a_latency_marker_passes_waiting_records_and_a_watermark_does_not() -> None:
    trace = Trace(UnorderedQueue())
    trace.run([("record", 0), ("marker", 0), ("watermark", 0), ("marker", 0), ("take", 0)])
    assert trace.left == [1]
    trace.complete_all()
    trace.take_all()
    assert trace.left == [1, 0, 2, 3]


def test_two_consecutive_watermarks_need_no_records_between_them() -> None:
    trace = Trace(UnorderedQueue())
    trace.run([("watermark", 0), ("watermark", 0), ("take", 0), ("watermark", 0), ("take", 0)])
    assert trace.left == [0, 1, 2]
