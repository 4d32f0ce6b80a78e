"""Has a task stop where somebody wants to look: at its batches, or at the records of one key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.epochs.task_contents import NO_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.epochs.epoch_task import EpochTask

    Process = Callable[[int, Sequence[Any], Sequence[int | None] | None], None]


def stop_at(task: EpochTask, key: Any, call: Callable[..., None]) -> None:
    """Has `call(process, number, values, timestamps)` process what a task gets from now on.

    Args:
        task: The task, open.
        key: Only records of this key, one by one; whole batches with NO_KEY.
        call: Calls what it is given, under a debugger for one.
    """
    chain: Any = task.chain
    process: Process = chain.process_batch
    selectors = chain.program.operators[0].selectors

    def process_batch(
        number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        if key is NO_KEY:
            call(process, number, values, timestamps)
            return
        select = selectors[number] if number < len(selectors) else None
        wanted = (
            [] if select is None else [n for n, value in enumerate(values) if select(value) == key]
        )
        # A batch may be cut, but ends once: what operators do then would come too often.
        chain.on_batch_end = _nothing
        try:
            start = 0
            for place in wanted:
                _part(process, number, values, timestamps, start, place)
                _part(
                    lambda *part: call(process, *part), number, values, timestamps, place, place + 1
                )
                start = place + 1
            _part(process, number, values, timestamps, start, len(values))
        finally:
            del chain.on_batch_end
        chain.on_batch_end()

    chain.process_batch = process_batch


def _part(
    process: Process,
    number: int,
    values: Sequence[Any],
    timestamps: Sequence[int | None] | None,
    start: int,
    end: int,
) -> None:
    if start < end:
        process(number, values[start:end], None if timestamps is None else timestamps[start:end])


def _nothing() -> None:
    """Stands for the end of a batch that continues."""
