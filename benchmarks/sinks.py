"""A sink that boils a stream down to numbers which the driver can check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.sink import Committer, Sink, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fold = Callable[[Sequence[Any]], tuple[int, ...]]


class DigestSink(Sink[Any]):
    """Folds each batch to a tuple of numbers, and adds the tuples up on the driver.

    Args:
        name: Under which `digest_of` finds the sum.
        fold: A batch of records -> numbers.
    """

    reads_timestamps = False
    changes_records = False

    def __init__(self, name: str, fold: Fold) -> None:
        self.name = name
        self.fold = fold

    @property
    def has_committer(self) -> bool:
        """The sum is what is committed."""
        return True

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        """Adds up on the executor."""
        del context
        return _DigestWriter(self.fold)

    def create_committer(self) -> Committer:
        """Adds up on the driver."""
        return _DigestCommitter(self.name)


class _DigestWriter(SinkWriter[Any]):
    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.total: tuple[int, ...] = ()

    def write(self, value: Any, timestamp: int | None) -> None:
        del timestamp
        self.write_batch([value], None)

    def write_batch(self, values: Sequence[Any], timestamps: Any) -> None:
        del timestamps
        digest = self.fold(values)
        self.total = added([self.total, digest]) if self.total else digest

    def prepare_commit(self) -> Sequence[Any]:
        return [self.total] if self.total else []


_DIGESTS: dict[str, tuple[int, ...]] = {}


class _DigestCommitter(Committer):
    def __init__(self, name: str) -> None:
        self.name = name

    def commit(self, committables: Sequence[Any]) -> None:
        _DIGESTS[self.name] = added(committables)


def digest_of(name: str) -> tuple[int, ...]:
    """The sum that the last job left under a name."""
    return _DIGESTS.pop(name)


def added(digests: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The sum, place by place.

    >>> added([(1, 10), (2, 20)])
    (3, 30)
    """
    return tuple(map(sum, zip(*digests, strict=True)))
