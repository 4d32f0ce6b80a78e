"""Transformations: the results of DSL calls, from which the graph is generated.

They form a DAG through `inputs`. Only the setters of the DSL change them (`uid`, `set_parallelism`, ...). Each
transformation has the line of the user's program that created it. Everything that Flink refuses in the call itself is
checked here.

Flink: `org.apache.flink.api.dag.Transformation` and its subclasses.
"""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.collection import CachedRecords
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner
    from opchain.runtime.program.operator_specs import OperatorSpec, SinkSpec
    from opchain.runtime.types.output_tag import OutputTag

_PACKAGE_FOLDERS = (
    *("opchain.compiler.dsl", "opchain.compiler.table", "opchain.compiler.graph"),
    "opchain.compiler.interception",
    "opchain.datastream",
)


class CallSite(NamedTuple):
    """A line of the user's program. Its text is `file.py:line`."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.path)}:{self.line}"  # noqa: PTH119 - hot: every DSL call


def user_call_site() -> CallSite:
    """The innermost frame that is not in opchain's DSL.

    It walks a few frames, and loads neither a traceback nor source lines, because every DSL call uses it.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to look up the stack cheaply
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        _PACKAGE_FOLDERS
    ):
        frame = frame.f_back
    return CallSite(frame.f_code.co_filename, frame.f_lineno)


MAX_PARALLELISM_LIMIT = 32768
UNSET = -1
"""A parallelism or maximum parallelism that the program does not set. Flink: `ExecutionConfig.PARALLELISM_DEFAULT`."""
_UID_HASH = re.compile(r"[0-9a-fA-F]{32}")


class ChainingStrategy(Enum):
    """How an operator may be chained. Flink: `ChainingStrategy`."""

    ALWAYS = "ALWAYS"
    NEVER = "NEVER"
    HEAD = "HEAD"
    HEAD_WITH_SOURCES = "HEAD_WITH_SOURCES"


class Transformation:
    """A node of the user's program.

    `parallelism` is always a number. `parallelism_configured` says whether the user or the kind of operator has set it;
    otherwise it is the environment's default. `max_parallelism` is -1 if it is not set.
    """

    def __init__(
        self,
        transformation_id: int,
        name: str,
        inputs: Sequence[Transformation],
        *,
        parallelism: int,
        parallelism_configured: bool = False,
        call_site: CallSite,
    ) -> None:
        self.id = transformation_id
        self.name = name
        self.inputs = tuple(inputs)
        self.parallelism = parallelism
        self.parallelism_configured = parallelism_configured
        self.max_parallelism = UNSET
        self.call_site = call_site
        self.uid: str | None = None
        self.uid_hash: str | None = None
        self.slot_sharing_group: str | None = None
        self.chaining_strategy = ChainingStrategy.ALWAYS
        self.description: str | None = None
        self.buffer_timeout: int | None = None
        self.is_parallel = True
        self._is_forced_non_parallel = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.name!r} ({self.call_site})>"

    def set_parallelism(self, parallelism: int, *, configured: bool = True) -> None:
        """Sets the number of subtasks. Refuses the same values as Flink's `Transformation.setParallelism`."""
        _check_int("parallelism", parallelism, self)
        if parallelism < 1 and parallelism != UNSET:
            raise GraphError(
                f"{self.label}: parallelism is {parallelism}; it must be at least 1 "
                "(or -1 for the environment's default)"
            )
        if not self.is_parallel and parallelism != 1:
            raise GraphError(
                f"{self.label}: parallelism is set to {parallelism}, but this operator is not "
                "parallel and always runs as 1 subtask; remove the setting"
            )
        self.parallelism = parallelism
        self.parallelism_configured = configured and parallelism != UNSET

    def set_max_parallelism(self, max_parallelism: int) -> None:
        """Sets the number of key groups, 1 to 32768."""
        _check_int("max parallelism", max_parallelism, self)
        if not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise GraphError(
                f"{self.label}: max parallelism is {max_parallelism}; it must be between 1 and {MAX_PARALLELISM_LIMIT}"
            )
        # As in Flink, a non-parallel SourceFunction accepts any max parallelism. Only forceNonParallel fixes it to 1.
        if self._is_forced_non_parallel and max_parallelism != 1:
            raise GraphError(
                f"{self.label}: max parallelism is set to {max_parallelism}, but this operator "
                "is not parallel; its max parallelism is 1"
            )
        self.max_parallelism = max_parallelism

    def force_non_parallel(self) -> None:
        """Fixes parallelism and max parallelism to 1. Flink: `forceNonParallel`."""
        self.parallelism = 1
        self.parallelism_configured = True
        self.max_parallelism = 1
        self.is_parallel = False
        self._is_forced_non_parallel = True

    def set_uid_hash(self, uid_hash: str) -> None:
        """Sets the user-defined operator id: 32 hexadecimal digits."""
        if not isinstance(uid_hash, str) or not _UID_HASH.fullmatch(uid_hash):
            raise GraphError(
                f"{self.label}: uid hash is {uid_hash!r}; it must be 32 hexadecimal digits"
            )
        self.uid_hash = uid_hash

    @property
    def label(self) -> str:
        """The operator in messages: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"


def upstream_of(*ends: Transformation) -> list[Transformation]:
    """The transformations, and all transformations upstream of them."""
    found, waiting = dict.fromkeys(ends), list(ends)
    while waiting:
        new = dict.fromkeys(each for each in waiting.pop().inputs if each not in found)
        found |= new
        waiting += new
    return list(found)


class OperatorTransformation(Transformation):
    """An operator with a spec and any number of inputs.

    Flink: SourceTransformation, LegacySourceTransformation, OneInput-, TwoInput-, MultipleInput-, KeyedMultipleInput-
    and the two BroadcastState transformations. Here the class of the spec distinguishes them. `key_bys` has an entry
    per input: the key that scopes the state, or None.
    """

    def __init__(
        self,
        transformation_id: int,
        name: str,
        inputs: Sequence[Transformation],
        *,
        spec: OperatorSpec,
        parallelism: int,
        parallelism_configured: bool = False,
        key_bys: Sequence[KeyBy | None] = (),
        call_site: CallSite,
        output_type: Any = None,
    ) -> None:
        super().__init__(
            transformation_id,
            name,
            inputs,
            parallelism=parallelism,
            parallelism_configured=parallelism_configured,
            call_site=call_site,
        )
        self.spec = spec
        self.key_bys = tuple(key_bys) or (None,) * len(self.inputs)
        self.output_type = output_type
        self.requested_side_outputs: dict[str, OutputTag] = {}

    @property
    def is_keyed(self) -> bool:
        """Whether any input has a key."""
        return any(key_by is not None for key_by in self.key_bys)


class SinkTransformation(Transformation):
    """A SinkV2 sink. It becomes a writer and, if the sink has one, a committer."""

    def __init__(
        self,
        transformation_id: int,
        name: str,
        stream: Transformation,
        *,
        spec: SinkSpec,
        parallelism: int,
        key_by: KeyBy | None = None,
        call_site: CallSite,
    ) -> None:
        super().__init__(
            transformation_id, name, (stream,), parallelism=parallelism, call_site=call_site
        )
        self.spec = spec
        self.key_by = key_by

    def set_uid_hash(self, uid_hash: str) -> None:
        """Raises an error: a SinkV2 sink becomes several operators, which cannot share an id."""
        raise GraphError(
            f"{self.label}: uid hash {uid_hash!r} is set on a sink of sink_to(), which becomes "
            "several operators; use uid() instead"
        )


class UnionTransformation(Transformation):
    """The union of several streams. It is not a node of the StreamGraph."""


class _FollowingTransformation(Transformation):
    """A transformation with the parallelism of its input."""

    def __init__(
        self, transformation_id: int, name: str, stream: Transformation, *, call_site: CallSite
    ) -> None:
        super().__init__(
            transformation_id,
            name,
            (stream,),
            parallelism=stream.parallelism,
            parallelism_configured=stream.parallelism_configured,
            call_site=call_site,
        )


class PartitionTransformation(_FollowingTransformation):
    """Sets a partitioner. It is not a node of the StreamGraph."""

    def __init__(
        self,
        transformation_id: int,
        stream: Transformation,
        partitioner: Partitioner,
        exchange_mode: ExchangeMode,
        *,
        call_site: CallSite,
    ) -> None:
        super().__init__(transformation_id, "Partition", stream, call_site=call_site)
        self.partitioner = partitioner
        self.exchange_mode = exchange_mode


class SideOutputTransformation(_FollowingTransformation):
    """The records of one output tag. It is not a node of the StreamGraph."""

    def __init__(
        self, transformation_id: int, stream: Transformation, tag: OutputTag, *, call_site: CallSite
    ) -> None:
        super().__init__(transformation_id, "SideOutput", stream, call_site=call_site)
        self.tag = tag


class CacheTransformation(_FollowingTransformation):
    """The records of an operator or a side output, kept for later jobs. Flink: CacheTransformation.

    Once a job has written the records, it has no inputs: later jobs read the records.
    """

    def __init__(
        self,
        transformation_id: int,
        stream: Transformation,
        *,
        call_site: CallSite,
        output_type: Any,
    ) -> None:
        self.records = CachedRecords()
        super().__init__(transformation_id, "Cache", stream, call_site=call_site)
        self.output_type = output_type

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The cached stream, until its records are written; then nothing."""
        return () if self.records.are_there else (self.stream,)

    @inputs.setter
    def inputs(self, inputs: tuple[Transformation, ...]) -> None:
        (self.stream,) = inputs


def _check_int(what: str, value: object, transformation: Transformation) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{transformation.label}: {what} is {value!r}; it must be an int")
