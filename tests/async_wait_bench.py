"""Runs an async wait operator step by step. Tests decide when calls end and move the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
from opchain.runtime.operators.async_wait.async_wait_operator import AsyncWaitOperator
from opchain.runtime.operators.operator import OperatorContext, Output, TaskInfo
from opchain.runtime.program.operator_specs import AsyncWaitSpec
from opchain.runtime.program.vertex_program import OperatorProgram, VertexProgram
from opchain.runtime.state.operator_state import SubtaskStateStore
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable


class ScriptedCall:
    """A call that ends when the test ends it."""

    def __init__(self, bench: Bench, on_end: Callable[[Any, BaseException | None], None]) -> None:
        self.values: Any = None
        self.is_cancelled = False
        self.has_ended = False
        self._bench = bench
        self._on_end = on_end

    def cancel(self) -> None:
        self.is_cancelled = True

    def returns(self, returned: Any) -> None:
        self.has_ended = True
        self._on_end(returned, None)
        self._bench.run_mail()

    def raises(self, error: BaseException) -> None:
        self.has_ended = True
        self._on_end(None, error)
        self._bench.run_mail()


class ScriptedLoop:
    """Stands in for the event loop: calls wait in `calls`, by attempt."""

    def __init__(self, bench: Bench) -> None:
        self.calls: list[ScriptedCall] = []
        self.is_running = False
        self._bench = bench

    def start(self) -> None:
        self.is_running = True

    def submit(self, invoke: Any, on_end: Any) -> ScriptedCall:
        assert self.is_running
        call = ScriptedCall(self._bench, on_end)
        (call.values,) = invoke.args
        self.calls.append(call)
        return call

    def stop(self) -> None:
        self.is_running = False


class Bench:
    """An AsyncWaitOperator with its mailbox and a clock that is moved by hand.

    `out` has everything that it emits: records as (value, timestamp), marks as (kind, what). Without
    `real_calls` its calls are in `calls`, and end when the test says so.
    """

    def __init__(
        self,
        function: Any,
        *,
        timeout_ms: int = 0,
        capacity: int = 100,
        is_ordered: bool = True,
        retry_strategy: Any = None,
        object_reuse: bool = False,
        real_calls: bool = False,
    ) -> None:
        spec = AsyncWaitSpec(function, timeout_ms, capacity, is_ordered, retry_strategy)
        program = OperatorProgram(0, "fetch", "id", "job.py:1", spec, -1, keys=(None,))
        vertex = VertexProgram("id", "fetch", 1, 1, 0, (program,), object_reuse=object_reuse)
        self.processor = MailboxProcessor(lambda controller: None)
        self.executor = self.processor.mailbox_executor(0)
        self.clock = ManualClock()
        self.service = ProcessingTimeService(self.clock, self.executor)
        self.out: list[tuple[Any, Any]] = []
        output = Output(
            collect=lambda value, timestamp: self.out.append((value, timestamp)),
            watermark_receivers=[lambda watermark: self.out.append(("watermark", watermark))],
            idle_receivers=[lambda is_idle: self.out.append(("idle", is_idle))],
            marker_receivers=[lambda marker: self.out.append(("marker", marker))],
        )
        context = OperatorContext(
            task=TaskInfo(vertex, 0),
            runtime_context=None,  # type: ignore[arg-type]  # functions of these tests don't ask
            processing_time=self.service,
            marker_time=self.service,
            mailbox=self.executor,
            send_to_driver=lambda item: None,
            operator_state=SubtaskStateStore(),
        )
        self.operator = AsyncWaitOperator(program, context, output)
        self.scripted = ScriptedLoop(self)
        if not real_calls:
            self.operator.event_loop = self.scripted  # type: ignore[assignment]
        self.operator.open()

    @property
    def calls(self) -> list[ScriptedCall]:
        return self.scripted.calls

    @property
    def values(self) -> list[Any]:
        return [value for value, _ in self.out]

    def put(self, *values: Any) -> None:
        for value in values:
            self.operator.process_element(value, None)

    def run_mail(self) -> None:
        while self.executor.try_yield():
            pass

    def advance(self, by_ms: int) -> None:
        for _ in range(by_ms):
            self.clock.advance(1)
            self.run_mail()

    def once_it_waits(self, action: Callable[[], object]) -> None:
        """Runs an action when the operator waits for mail."""
        self.executor.execute(action, "what happens meanwhile")

    def close(self) -> None:
        self.operator.close()
        self.processor.close()
