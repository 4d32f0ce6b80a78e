"""`on_error`: a record whose function fails is counted, or goes to a side output, and the job continues.

Results are held until the function has returned. So a record that fails emits nothing, and an error of a downstream
operator is not counted as an error of this operator.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from opchain.runtime.errors import InternalError
from opchain.runtime.files.malformed import MALFORMED_COUNTER
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.metrics.metric_types import Counter
    from opchain.runtime.operators.operator import Output, StreamOperator
    from opchain.runtime.program.operator_specs import OnError


class FailedRecord(NamedTuple):
    """A record whose function raised an exception. The side output of `on_error` gets it.

    Attributes:
        value: The record.
        timestamp: Its event time in milliseconds, or None.
        error: The exception: `ValueError: invalid literal ...`.
        operator: The name of the operator.
        place: The line that raised it: `parse.py:12 in parse`.
    """

    value: Any
    timestamp: int | None
    error: str
    operator: str
    place: str


class HeldOutput:
    """The output of a guarded operator. It has the attributes of an Output, which the chain wires."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._held: list[tuple[str | None, Any, int | None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)

    def collect(self, value: Any, timestamp: int | None) -> None:
        """Emits a record, or holds it while a function runs."""
        if self._held is None:
            self._output.collect(value, timestamp)
        else:
            self._held.append((None, value, timestamp))

    def collect_to(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        """Emits a record to a side output, or holds it while a function runs."""
        if self._held is None:
            self._output.collect_to(tag_id, value, timestamp)
        else:
            self._held.append((tag_id, value, timestamp))

    @property
    def is_holding(self) -> bool:
        """Whether a function runs whose errors are handled."""
        return self._held is not None

    def hold(self) -> None:
        """Holds records from now on."""
        self._held = []

    def drop(self) -> None:
        """Drops held records."""
        self._held = None

    def release(self) -> None:
        """Emits held records."""
        held, self._held = self._held, None
        for tag_id, value, timestamp in held or ():
            if tag_id is None:
                self._output.collect(value, timestamp)
            else:
                self._output.collect_to(tag_id, value, timestamp)


def guarded(
    make: Callable[[Output], StreamOperator], output: Output, policy: OnError
) -> StreamOperator:
    """Creates an operator whose inputs handle exceptions as the policy says."""
    held = HeldOutput(output)
    operator = make(cast("Output", held))
    failures = _Failures(operator, held, policy)
    # `input` gives these two out, too.
    operator.process_element = failures.guard(operator.process_element)  # type: ignore[assignment]
    operator.process_element2 = failures.guard(operator.process_element2)  # type: ignore[assignment]
    operator.end_key = failures.outside(operator.end_key)  # type: ignore[method-assign]
    return operator


class _Failures:
    def __init__(self, operator: StreamOperator, output: HeldOutput, policy: OnError) -> None:
        self._operator = operator
        self._output = output
        self._tag = policy.tag_id if isinstance(policy, OutputTag) else None
        self._counter: Counter | None = None

    def guard(self, process: Callable[[Any, int | None], None]) -> Callable[[Any, Any], None]:
        output = self._output

        def process_guarded(value: Any, timestamp: int | None) -> None:
            output.hold()
            try:
                process(value, timestamp)
            except InternalError:
                output.drop()
                raise
            except Exception as error:
                if not output.is_holding:
                    raise
                output.drop()
                self._take(value, timestamp, error)
            except BaseException:
                output.drop()
                raise
            else:
                output.release()

        return process_guarded

    def outside(self, end_key: Callable[[], None]) -> Callable[[], None]:
        """A record of the next key ends the key, so its timers fire inside the guard of this record.

        The results of the timers are emitted in any case, and their errors fail the job.
        """
        output = self._output

        def end_key_outside() -> None:
            was_holding = output.is_holding
            output.release()
            end_key()
            if was_holding:
                output.hold()

        return end_key_outside

    def _take(self, value: Any, timestamp: int | None, error: Exception) -> None:
        if self._counter is None:
            self._counter = self._operator.context.metrics.counter(MALFORMED_COUNTER)
        self._counter.inc()
        if self._tag is None:
            return
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = traceback.format_exception_only(type(error), error)[-1].strip()
        place = f"{frame.filename}:{frame.lineno} in {frame.name}"
        failed = FailedRecord(value, timestamp, text, self._operator.program.name, place)
        self._output.collect_to(self._tag, failed, timestamp)
