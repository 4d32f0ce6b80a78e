"""The rules that decide whether two operators share a task, each with its reason and its remedy.

Flink has these conditions in `isChainable`, `isChainableInput`, `areOperatorsChainable`,
`arePartitionerAndExchangeModeChainable` and `isChainableSource` of `StreamingJobGraphGenerator`, and returns a boolean.
Here a rule returns None if it holds, or else the reason as a part of a sentence. The rules have the order in which Flink
checks them, so the first broken rule is Flink's reason.

An edge that breaks no rule is chained. Usually it becomes a link of a chain (`isChainable`). With
`Link.runs_source_inside_head`, the source runs inside the operator that it feeds.

A new rule is a function, an entry in CHAINING_RULES, and a case in the test of this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opchain.compiler.graph.partitioner import ExchangeMode, PartitionerKind
from opchain.compiler.graph.transformation import UNSET, ChainingStrategy
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.program.operator_specs import LegacySourceSpec, SourceSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.graph.stream_graph import StreamEdge, StreamNode
    from opchain.compiler.settings.job_settings import JobSettings


class Link(NamedTuple):
    """An edge, with everything that decides whether its ends share a task.

    `head` is the head of the chain of `up`. `inputs` is the number of inputs of `down`. `streams` is the number of streams
    that are united at this input. `consumers` is the number of out-edges of `up`.
    """

    up: StreamNode
    down: StreamNode
    edge: StreamEdge
    head: StreamNode
    inputs: int
    streams: int
    consumers: int
    is_batch: bool
    settings: JobSettings

    @property
    def runs_source_inside_head(self) -> bool:
        """Whether `down` chains its sources, and `up` is a source with no other consumer."""
        return (
            self.down.chaining_strategy is ChainingStrategy.HEAD_WITH_SOURCES
            and self.consumers == 1
            and isinstance(self.up.spec, SourceSpec)
            and not self.up_is_fed_by_spark
        )

    @property
    def up_is_fed_by_spark(self) -> bool:
        """Whether Spark delivers the records of `up`. It delivers records only to the first operator of a task."""
        return isinstance(getattr(self.up.spec, "source", None), SparkRowSource)


def down_has_one_input(link: Link) -> str | None:
    """Flink: `getInEdges().size() == 1`. The next rule handles unions, which Flink checks here too."""
    if link.inputs == 1 or link.runs_source_inside_head:
        return None
    return f"{link.down.label} has {link.inputs} inputs"


def input_is_not_a_union(link: Link) -> str | None:
    """Unions only exist in the network stack: no other in-edge may have the same input number."""
    if link.streams == 1:
        return None
    number = link.edge.type_number
    which = f"input {number}" if number else "the input"
    return f"{which} of {link.down.label} is a union of {link.streams} streams"


def chaining_is_enabled(link: Link) -> str | None:
    """The setting of the job."""
    return None if link.settings.chaining_enabled else "chaining is disabled for the whole job"


def same_slot_sharing_group(link: Link) -> str | None:
    """Operators of different groups must not share a slot, and so not a task."""
    up, down = link.up.slot_sharing_group, link.down.slot_sharing_group
    if up == down:
        return None
    return f"slot sharing groups differ: {link.up.label} is in '{up}', {link.down.label} is in '{down}'"


def no_yielding_behind_a_legacy_source(link: Link) -> str | None:
    """A legacy source blocks the thread of its task, so an operator that yields to mail would deadlock.

    Flink: `YieldingOperatorFactory` and `getHeadOperator(...).isLegacySource()`.
    """
    if not link.down.spec.is_yielding or not isinstance(link.head.spec, LegacySourceSpec):
        return None
    return (
        f"{link.down.label} waits for mail while it processes, and the chain's head "
        f"{link.head.label} is a SourceFunction, which occupies the task's thread"
    )


def up_allows_chaining(link: Link) -> str | None:
    """The strategy NEVER forbids chains on both sides."""
    if link.up.chaining_strategy is not ChainingStrategy.NEVER:
        return None
    return f"{link.up.label} is never chained (by disable_chaining(), or by its kind)"


def _fits_into_head(link: Link) -> str | None:
    if link.up_is_fed_by_spark:
        return f"{link.up.label} reads a DataFrame, which Spark delivers only to the first operator of a task"
    if isinstance(link.up.spec, SourceSpec):
        return None
    return f"{link.down.label} takes only sources into its chain, and {link.up.label} is not one"


def down_allows_chaining(link: Link) -> str | None:
    """NEVER and HEAD start a chain. HEAD_WITH_SOURCES only accepts a FLIP-27 source."""
    strategy = link.down.chaining_strategy
    if strategy is ChainingStrategy.ALWAYS:
        return None
    if strategy is ChainingStrategy.NEVER:
        return f"{link.down.label} is never chained (by disable_chaining(), or by its kind)"
    if strategy is ChainingStrategy.HEAD_WITH_SOURCES:
        return _fits_into_head(link)
    if link.down.is_keyed and link.is_batch:
        return (
            f"{link.down.label} is keyed, and in batch mode its input is sorted by key, so it starts "
            "a chain"
        )
    return f"{link.down.label} starts a new chain"


def same_parallelism(link: Link) -> str | None:
    """A task has exactly one subtask of each of its operators."""
    if link.up.parallelism == link.down.parallelism:
        return None
    return (
        f"parallelism differs: {link.up.label} runs {_subtasks(link.up.parallelism)}, "
        f"{link.down.label} runs {link.down.parallelism}"
    )


def same_max_parallelism(link: Link) -> str | None:
    """Only if the job requires it: the max parallelism of a chained operator has no effect."""
    if link.settings.chain_different_max_parallelism:
        return None
    up, down = link.up.max_parallelism, link.down.max_parallelism
    if up == down:
        return None
    return (
        f"max parallelism differs: {_or_unset(up)} at {link.up.label}, {_or_unset(down)} at "
        f"{link.down.label}, and the job chains only equal ones"
    )


def records_stay_in_place(link: Link) -> str | None:
    """Only the three forward partitioners leave a record in its subtask."""
    partitioner = link.edge.partitioner
    if partitioner.is_forward:
        return None
    kind = partitioner.kind
    if kind is PartitionerKind.REBALANCE and not link.edge.partitioner_is_explicit:
        return "records are rebalanced, because parallelism differs and no partitioner was chosen"
    if kind is PartitionerKind.HASH and partitioner.key_by is not None:
        return f"records move to the task of their key (hash by '{partitioner.key_by.name}')"
    return f"records move between tasks ({kind.value.lower()})"


def exchange_is_not_materialized(link: Link) -> str | None:
    """Exchange mode BATCH requires that all records are written before they are read.

    Flink checks this only for plain forward edges: `ForwardForConsecutiveHash` is chained in any mode.
    """
    if link.edge.exchange_mode is not ExchangeMode.BATCH:
        return None
    if link.edge.partitioner.kind is PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH:
        return None
    return (
        f"the exchange between {link.up.label} and {link.down.label} is a batch exchange: it is "
        "written in full before it is read"
    )


def _down_remedy(link: Link) -> str:
    if link.down.chaining_strategy is ChainingStrategy.HEAD_WITH_SOURCES:
        return f"let {link.down.label} read a source of from_source() directly"
    if link.down.is_keyed and link.is_batch:
        return f"run in STREAMING mode, if the input of {link.down.label} need not be sorted"
    return f"remove start_new_chain() or disable_chaining() from {link.down.label}, if it is called"


def _partitioner_remedy(link: Link) -> str:
    kind = link.edge.partitioner.kind
    if kind is PartitionerKind.REBALANCE and not link.edge.partitioner_is_explicit:
        return f"give {link.up.label} and {link.down.label} the same parallelism"
    if kind is PartitionerKind.HASH:
        return (
            "keep it if records must move to the task of their key; if they are there already, use "
            "DataStreamUtils.reinterpret_as_keyed_stream()"
        )
    return f"remove {kind.value.lower()}() before {link.down.label}, if records may stay in place"


class Rule(NamedTuple):
    """A condition of chaining.

    `code` is stable: tests and tools use it. `why_broken` is the rule. `remedy` says what the user could change, with
    the names of the operators.
    """

    code: str
    why_broken: Callable[[Link], str | None]
    remedy: Callable[[Link], str]


CHAINING_RULES: tuple[Rule, ...] = (
    Rule(
        "inputs",
        down_has_one_input,
        lambda link: f"{link.down.label} has several inputs, so it always starts a vertex",
    ),
    Rule(
        "union",
        input_is_not_a_union,
        lambda link: f"put the operators of {link.down.label} before union(), once per stream",
    ),
    Rule(
        "chaining-disabled",
        chaining_is_enabled,
        lambda _: (
            "do not call disable_operator_chaining(), or set pipeline.operator-chaining.enabled"
        ),
    ),
    Rule(
        "slot-sharing-group",
        same_slot_sharing_group,
        lambda link: (
            f"put both in one group: slot_sharing_group('{link.up.slot_sharing_group}') on "
            f"{link.down.label}"
        ),
    ),
    Rule(
        "yielding",
        no_yielding_behind_a_legacy_source,
        lambda link: f"read {link.head.label} with from_source() instead of add_source()",
    ),
    Rule(
        "upstream-strategy",
        up_allows_chaining,
        lambda link: f"remove disable_chaining() from {link.up.label}, if it is called",
    ),
    Rule("downstream-strategy", down_allows_chaining, _down_remedy),
    Rule(
        "parallelism",
        same_parallelism,
        lambda link: (
            f"give both the same parallelism: set_parallelism({link.up.parallelism}) on "
            f"{link.down.label}, or set_parallelism({link.down.parallelism}) on {link.up.label}"
        ),
    ),
    Rule(
        "max-parallelism",
        same_max_parallelism,
        lambda link: (
            f"give {link.up.label} and {link.down.label} the same max parallelism, or set pipeline."
            "operator-chaining.chain-operators-with-different-max-parallelism"
        ),
    ),
    Rule("partitioner", records_stay_in_place, _partitioner_remedy),
    Rule(
        "exchange-mode",
        exchange_is_not_materialized,
        lambda link: (
            f"run in STREAMING mode, if {link.down.label} need not wait for all of its input"
        ),
    ),
)


def is_chained(link: Link) -> bool:
    """Whether both ends share a task, because no rule is broken."""
    return all(rule.why_broken(link) is None for rule in CHAINING_RULES)


def _or_unset(max_parallelism: int) -> str:
    return "unset" if max_parallelism == UNSET else str(max_parallelism)


def _subtasks(number: int) -> str:
    return "1 subtask" if number == 1 else f"{number} subtasks"
