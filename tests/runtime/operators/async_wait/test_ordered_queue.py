from __future__ import annotations

from element_queue_trace import STEPS, Step, Trace
from hypothesis import given

from opchain.runtime.operators.async_wait.queues import OrderedQueue


@given(STEPS)
def test_elements_are_emitted_in_the_order_of_arrival(steps: list[Step]) -> None:
    trace = Trace(OrderedQueue())
    trace.run(steps)
    trace.take_all()
    # The model: the longest prefix in which every record is complete.
    expected = []
    for number, kind in enumerate(trace.kinds):
        if kind == "record" and number not in trace.completed:
            break
        expected.append(number)
    assert trace.left == expected
    assert len(trace.queue) == len(trace.kinds) - len(expected)


@given(STEPS)
def test_no_element_is_lost(steps: list[Step]) -> None:
    trace = Trace(OrderedQueue())
    trace.run(steps)
    trace.complete_all()
    trace.take_all()
    assert trace.left == list(range(len(trace.kinds)))
    assert len(trace.queue) == 0
