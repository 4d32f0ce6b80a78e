"""One case per rule: an edge that breaks only this rule, with the reason that the user reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.stream_graph import StreamEdge, StreamNode
from opchain.compiler.graph.transformation import CallSite, ChainingStrategy
from opchain.compiler.passes.chaining_rules import CHAINING_RULES, Link, is_chained
from opchain.compiler.settings.job_settings import JobSettings
from opchain.runtime.program import operator_specs as specs

MAP = specs.MapSpec(str)
SOURCE: Any = specs.SourceSpec(source=None)  # type: ignore[arg-type]
UP = StreamNode(
    id=1,
    transformation_id=1,
    name="parse",
    spec=MAP,
    parallelism=4,
    parallelism_configured=False,
    max_parallelism=-1,
    slot_sharing_group="default",
    chaining_strategy=ChainingStrategy.ALWAYS,
    call_site=CallSite("/home/ann/clicks.py", 14),
)
DOWN = replace(UP, id=2, transformation_id=2, name="clean", call_site=CallSite("clicks.py", 15))
EDGE = StreamEdge(0, 1, 2, type_number=0, partitioner=Partitioner(PartitionerKind.FORWARD))


def link(
    *,
    up: dict[str, Any] | None = None,
    down: dict[str, Any] | None = None,
    edge: dict[str, Any] | None = None,
    **fields: Any,
) -> Link:
    """A link that breaks nothing, but for what is given."""
    up_node = replace(UP, **up or {})
    intact = Link(
        up=up_node,
        down=replace(DOWN, **down or {}),
        edge=replace(EDGE, **edge or {}),
        head=up_node,
        inputs=1,
        streams=1,
        consumers=1,
        is_batch=False,
        settings=JobSettings(),
    )
    return intact._replace(**fields)


KEY = KeyBy(str.lower, name="word")
LEGACY = replace(UP, name="Source: old", spec=specs.LegacySourceSpec(None))

BROKEN = {
    "inputs": (link(inputs=2), "'clean' (clicks.py:15) has 2 inputs"),
    "union": (
        link(streams=3, edge={"type_number": 2}),
        "input 2 of 'clean' (clicks.py:15) is a union of 3 streams",
    ),
    "chaining-disabled": (
        link(settings=JobSettings(chaining_enabled=False)),
        "chaining is disabled for the whole job",
    ),
    "slot-sharing-group": (
        link(down={"slot_sharing_group": "heavy"}),
        (
            "slot sharing groups differ: 'parse' (clicks.py:14) is in 'default', "
            "'clean' (clicks.py:15) is in 'heavy'"
        ),
    ),
    "yielding": (
        link(down={"spec": specs.AsyncWaitSpec(None, timeout_ms=0)}, head=LEGACY),
        (
            "'clean' (clicks.py:15) waits for mail while it processes, and the chain's head "
            "'Source: old' (clicks.py:14) is a SourceFunction"
        ),
    ),
    "upstream-strategy": (
        link(up={"chaining_strategy": ChainingStrategy.NEVER}),
        "'parse' (clicks.py:14) is never chained",
    ),
    "downstream-strategy": (
        link(down={"chaining_strategy": ChainingStrategy.HEAD}),
        "'clean' (clicks.py:15) starts a new chain",
    ),
    "parallelism": (
        link(down={"parallelism": 2}),
        "parallelism differs: 'parse' (clicks.py:14) runs 4 subtasks, 'clean' (clicks.py:15) runs 2",
    ),
    "max-parallelism": (
        link(
            down={"max_parallelism": 8},
            settings=JobSettings(chain_different_max_parallelism=False),
        ),
        "max parallelism differs: unset at 'parse' (clicks.py:14), 8 at 'clean' (clicks.py:15)",
    ),
    "partitioner": (
        link(edge={"partitioner": Partitioner(PartitionerKind.HASH, KEY)}),
        "records move to the task of their key (hash by 'word')",
    ),
    "exchange-mode": (
        link(edge={"exchange_mode": ExchangeMode.BATCH}),
        "the exchange between 'parse' (clicks.py:14) and 'clean' (clicks.py:15) is a batch exchange",
    ),
}


@pytest.mark.parametrize(("code", "broken", "reason"), [(k, *v) for k, v in BROKEN.items()])
def test_each_chaining_rule_can_break_alone_and_gives_its_reason(
    code: str, broken: Link, reason: str
) -> None:
    reasons = {rule.code: rule.why_broken(broken) for rule in CHAINING_RULES}
    assert [code for code, why in reasons.items() if why is not None] == [code]
    assert reason in (reasons[code] or "")
    assert not is_chained(broken)


@pytest.mark.parametrize(("code", "broken"), [(k, v[0]) for k, v in BROKEN.items()])
def test_each_chaining_rule_has_a_remedy(code: str, broken: Link) -> None:
    (rule,) = (rule for rule in CHAINING_RULES if rule.code == code)
    assert len(rule.remedy(broken)) > len("do not")


def test_every_chaining_rule_has_a_test_case() -> None:
    assert list(BROKEN) == [rule.code for rule in CHAINING_RULES]


def test_an_edge_that_breaks_no_rule_is_chained() -> None:
    assert is_chained(link())


HEAD_WITH_SOURCES = {"chaining_strategy": ChainingStrategy.HEAD_WITH_SOURCES}

STRATEGIES = [
    # up, down, is_batch, extra fields, broken rule or None
    (ChainingStrategy.HEAD, ChainingStrategy.ALWAYS, None),
    (ChainingStrategy.HEAD_WITH_SOURCES, ChainingStrategy.ALWAYS, None),
    (ChainingStrategy.ALWAYS, ChainingStrategy.NEVER, "downstream-strategy"),
    (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD, "downstream-strategy"),
    (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD_WITH_SOURCES, "downstream-strategy"),
    (ChainingStrategy.NEVER, ChainingStrategy.ALWAYS, "upstream-strategy"),
]


@pytest.mark.parametrize(("up", "down", "broken"), STRATEGIES)
def test_chaining_strategies_of_both_ends_decide_about_chaining(
    up: ChainingStrategy, down: ChainingStrategy, broken: str | None
) -> None:
    case = link(up={"chaining_strategy": up}, down={"chaining_strategy": down})
    found = [rule.code for rule in CHAINING_RULES if rule.why_broken(case) is not None]
    assert found == ([] if broken is None else [broken])


@pytest.mark.parametrize(
    ("consumers", "inputs", "streams", "expected"),
    [
        pytest.param(1, 3, 1, True, id="a source of one of several inputs"),
        pytest.param(1, 1, 1, True, id="a source of the only input"),
        pytest.param(2, 1, 1, True, id="ordinary chaining: the source has another consumer"),
        pytest.param(2, 3, 1, False, id="another consumer, several inputs"),
        pytest.param(1, 3, 2, False, id="a union at the source's input"),
    ],
)
def test_head_with_sources_chains_its_sources(
    consumers: int, inputs: int, streams: int, expected: bool
) -> None:
    case = link(
        up={"spec": SOURCE},
        down=HEAD_WITH_SOURCES,
        consumers=consumers,
        inputs=inputs,
        streams=streams,
    )
    assert is_chained(case) is expected


def test_a_legacy_source_does_not_run_inside_another_head() -> None:
    case = link(up={"spec": specs.LegacySourceSpec(None)}, down=HEAD_WITH_SOURCES)
    assert not case.runs_source_inside_head
    assert not is_chained(case)


@pytest.mark.parametrize(
    ("kind", "chained"),
    [(kind, kind.is_forward) for kind in PartitionerKind],
)
def test_only_forward_partitioners_chain(kind: PartitionerKind, chained: bool) -> None:
    assert is_chained(link(edge={"partitioner": Partitioner(kind)})) is chained


def test_consecutive_hash_chains_across_a_batch_exchange() -> None:
    partitioner = Partitioner(PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH, KEY)
    case = link(edge={"partitioner": partitioner, "exchange_mode": ExchangeMode.BATCH})
    assert is_chained(case)


def test_a_default_rebalance_is_blamed_on_parallelism() -> None:
    edge = {"partitioner": Partitioner(PartitionerKind.REBALANCE)}
    case = link(down={"parallelism": 2}, edge=edge)
    reasons = {rule.code: rule.why_broken(case) for rule in CHAINING_RULES}
    assert reasons["partitioner"] == (
        "records are rebalanced, because parallelism differs and no partitioner was chosen"
    )
    assert reasons["parallelism"] is not None


def test_batch_mode_says_that_keys_are_sorted() -> None:
    down = {"chaining_strategy": ChainingStrategy.HEAD, "key_bys": (KEY,)}
    case = link(down=down, is_batch=True)
    (reason,) = (why for rule in CHAINING_RULES if (why := rule.why_broken(case)) is not None)
    assert "in batch mode its input is sorted by key" in reason
