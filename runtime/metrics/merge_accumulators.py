"""One value for each name of an accumulator, over all operators and subtasks of a job."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.metrics.accumulators import Accumulator


class AccumulatorError(StreamError):
    """An accumulator has no value: its subtasks' values cannot be merged, or its class raised."""


class SentAccumulator(NamedTuple):
    """The accumulator of one operator and subtask, as it reached the driver."""

    operator: str
    name: str
    pickled: bytes


@dataclass(frozen=True, slots=True)
class FailedAccumulator:
    """In place of a value: why there is none. Whoever asks for the value gets the error, not the job.

    Flink: `FailedAccumulatorSerialization`.
    """

    error: str


def merge_accumulators(sent: Iterable[SentAccumulator]) -> dict[str, Any]:
    """The merged value, or a FailedAccumulator, by name; names and subtasks in the order of `sent`."""
    by_name: dict[str, list[SentAccumulator]] = {}
    for accumulator in sent:
        by_name.setdefault(accumulator.name, []).append(accumulator)
    return {name: _merged(same_name) for name, same_name in by_name.items()}


def _merged(sent: list[SentAccumulator]) -> Any:
    try:
        first, *others = ((item.operator, _read(item)) for item in sent)
        operator, merged = first
        for other_operator, other in others:
            kind, other_kind = type(merged).__qualname__, type(other).__qualname__
            if kind != other_kind:
                return FailedAccumulator(
                    f"it is a {kind} in '{operator}' and a {other_kind} in '{other_operator}'; "
                    "use different names, or one class"
                )
            merged.merge(other)
        return merged.get_local_value()
    except Exception as error:  # noqa: BLE001 - the accumulator may be the user's
        return FailedAccumulator(f"{type(error).__name__}: {error}")


def _read(sent: SentAccumulator) -> Accumulator[Any, Any]:
    accumulator: Accumulator[Any, Any] = pickle.loads(sent.pickled)
    return accumulator
