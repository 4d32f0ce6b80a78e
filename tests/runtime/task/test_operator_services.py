from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.operators.operator import TaskInfo
from opchain.runtime.program.operator_specs import MapSpec
from opchain.runtime.program.vertex_program import (
    InputProgram,
    KeyProgram,
    OperatorProgram,
    VertexProgram,
)
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.keys.key_hashers import hasher_named
from opchain.runtime.state.keys.key_identity import PLAIN_CLASSES
from opchain.runtime.state.timers.internal_timer_service import (
    BatchTimerService,
    InternalTimerService,
)
from opchain.runtime.task.operator_services import operator_context
from opchain.runtime.task.stream_task import TaskEnvironment
from opchain.runtime.testing.operator_harness import ManualClock


def context_of(
    *keys: Any,
    parent: int = -1,
    parallelism: int = 2,
    is_pointwise: bool = False,
    is_batch: bool = False,
) -> Any:
    program = OperatorProgram(0, "sum", "id", "job.py:3", MapSpec(str), parent, keys=keys)
    edges = tuple(
        InputProgram(number, number, 2, is_pointwise and keys[number] is not None, False, "edge")
        for number in range(len(keys))
    )
    vertex = VertexProgram("id", "sum", parallelism, 16, 0, (program,), edges, is_batch=is_batch)
    sent: list[Any] = []
    context = operator_context(
        program,
        TaskInfo(vertex, 1 if parallelism > 1 else 0),
        MailboxProcessor(lambda _: None).mailbox_executor(0),
        ManualClock(7),
        TaskEnvironment(),
        send_to_driver=sent.append,
        job_parameters={"a": "b"},
    )
    context.send_to_driver("item")
    assert sent == ["item"]
    return context


KEY = KeyProgram(str, "key", "job.py:2")


def test_an_operator_without_a_key_has_no_keyed_services() -> None:
    context = context_of(None)
    assert context.keyed is None
    assert context.operator_state.get_registered_state_names() == frozenset()
    assert context.restored_checkpoint_id is None
    assert context.runtime_context.get_job_parameter("a", "") == "b"
    assert context.processing_time.current_processing_time() == 7


@pytest.mark.parametrize("keys", [(KEY,), (KEY, None), (None, KEY)])
def test_an_operator_with_a_keyed_input_has_state_for_its_key_groups(keys: Any) -> None:
    context = context_of(*keys)
    assert context.keyed_state.key_groups == key_group_range(16, 2, 1)
    assert context.keyed_state.max_parallelism == 16
    assert context.keyed_state.identity.plain == PLAIN_CLASSES
    assert type(context.timers.service("t", context)) is InternalTimerService


def test_batch_mode_has_its_own_timer_service() -> None:
    assert type(context_of(KEY, is_batch=True).timers.service("t", None)) is BatchTimerService


def test_the_declared_key_type_decides_which_keys_are_the_same() -> None:
    backend = context_of(KeyProgram(str, "key", "job.py:2", hasher_named("Long"))).keyed_state
    assert backend.identity.plain == {int}


@pytest.mark.parametrize(
    ("settings", "checks"),
    [
        ({}, False),
        ({"parent": 0}, True),
        ({"is_pointwise": True}, True),
        ({"is_pointwise": True, "parallelism": 1}, False),
        ({"parent": 0, "parallelism": 1}, False),
    ],
)
def test_keys_are_checked_if_no_keyed_exchange_is_upstream(settings: Any, checks: bool) -> None:
    assert (not context_of(KEY, None, **settings).keyed_state.identity.plain) is checks


def test_a_broadcast_input_without_a_key_needs_no_key_check() -> None:
    assert context_of(None, KEY, is_pointwise=False).keyed_state.identity.plain
