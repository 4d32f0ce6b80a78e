from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.program.vertex_program import InputProgram
from opchain.runtime.records.elements import Buffer, EndOfInput, RecordBatch, Watermark
from opchain.runtime.records.wire import encode
from opchain.runtime.task.input.input_gate import InputElement, InputGate
from opchain.runtime.task.input.live_input import LiveBuffers, LiveInput
from opchain.runtime.task.input.task_input import Waiter
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PATIENCE_S = 60


def buffer(channel: int, sequence: int, *elements: Any) -> Buffer:
    return Buffer(0, 0, channel, sequence, encode(list(elements)))


class Bench:
    """A live input over two channels, whose elements are collected in `fed`."""

    def __init__(self, pulled: Iterable[InputElement] = ()) -> None:
        self.fed: list[Any] = []
        self.buffers = LiveBuffers()
        gate = InputGate([InputProgram(0, 0, 2, False, True, "edge")], 0, 1, ())
        self.processor = MailboxProcessor(self._process_next)
        feeder: Any = self
        self.parts = SimpleNamespace(has_more=False)
        waiter = Waiter(self.processor, ManualClock())
        self.input = LiveInput(self.buffers, gate, feeder, pulled, self.processor, waiter)

    def _process_next(self, controller: Any) -> None:
        self.input.process_next(controller)

    def feed(self, item: InputElement) -> None:
        self.fed.append(item.element)

    def turn(self) -> bool:
        return self.processor.turn()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.input.close()
    bench.processor.close()


def test_elements_are_processed_as_they_arrive(bench: Bench) -> None:
    bench.buffers.deliver(buffer(1, 0, RecordBatch(["early"])))
    assert bench.turn()
    bench.buffers.deliver(buffer(0, 0, Watermark(5), RecordBatch(["a"])))
    bench.buffers.deliver(buffer(1, 1, RecordBatch(["b"])))
    while len(bench.fed) < 4:
        assert bench.turn()
    assert bench.fed == [
        *(RecordBatch(["early"]), Watermark(5), RecordBatch(["a"]), RecordBatch(["b"]))
    ]


def test_the_input_ends_when_all_channels_have_ended(bench: Bench) -> None:
    bench.turn()
    bench.buffers.deliver(buffer(0, 0, EndOfInput()))
    assert bench.turn()
    bench.buffers.deliver(buffer(1, 0, RecordBatch(["last"]), EndOfInput()))
    while bench.turn():
        pass
    assert bench.processor.is_completed
    assert bench.fed == [RecordBatch(["last"]), EndOfInput()]


def test_other_mail_runs_while_no_buffer_arrives(bench: Bench) -> None:
    ran: list[str] = []
    bench.turn()
    bench.processor.mailbox_executor(0).execute(lambda: ran.append("timer"), "a timer")
    bench.turn()
    assert ran == ["timer"]


def test_no_buffer_is_processed_while_an_operator_yields(bench: Bench) -> None:
    bench.turn()
    bench.buffers.deliver(buffer(0, 0, RecordBatch(["a"])))
    assert not bench.processor.mailbox_executor(0).try_yield()
    assert bench.fed == []


def test_chained_sources_are_read_between_buffers() -> None:
    pulled = [InputElement(1, -1, RecordBatch([number])) for number in range(2)]
    bench = Bench(pulled)
    bench.turn()
    bench.buffers.deliver(buffer(0, 0, EndOfInput()))
    bench.buffers.deliver(buffer(1, 0, EndOfInput()))
    while bench.turn():
        pass
    assert bench.fed == [RecordBatch([0]), EndOfInput(), RecordBatch([1])]
    bench.processor.close()


def test_a_producer_waits_for_free_capacity() -> None:
    buffers = LiveBuffers(most_waiting=1)
    taken: list[Buffer] = []
    came = threading.Semaphore(0)

    def take(item: Buffer) -> None:
        taken.append(item)
        came.release()

    buffers.connect(take)

    def produce() -> None:
        for sequence in range(3):
            buffers.deliver(buffer(0, sequence, EndOfInput()))

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    for number in range(1, 4):
        assert came.acquire(timeout=PATIENCE_S)
        assert len(taken) == number
        buffers.release()
    producer.join(PATIENCE_S)
    assert [item.sequence for item in taken] == [0, 1, 2]


def test_a_producer_does_not_wait_for_a_finished_task() -> None:
    buffers = LiveBuffers(most_waiting=0)
    producer = threading.Thread(
        target=buffers.deliver, args=(buffer(0, 0, EndOfInput()),), daemon=True
    )
    producer.start()
    buffers.close()
    producer.join(PATIENCE_S)
    assert not producer.is_alive()
