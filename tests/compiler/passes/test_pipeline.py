from __future__ import annotations

import gc
from typing import Any

import pytest

from opchain.compiler.graph.plan import StreamGraphError, required
from opchain.compiler.passes.pipeline import PASSES, STAGES, compile_program
from opchain.runtime.errors import InternalError


def test_each_stage_has_one_name() -> None:
    assert len(set(STAGES)) == len(PASSES)


@pytest.mark.parametrize("stage", STAGES[:11])
def test_compile_program_stops_after_any_stage(env: Any, source: Any, stage: str) -> None:
    source(env).map(str)
    plan = compile_program(env.program(), until=stage)
    assert (plan.job_graph is not None) is (stage == "job-graph")
    assert plan.stream_graph is not None


def test_an_unknown_stage_is_refused_with_a_list_of_stages(env: Any) -> None:
    with pytest.raises(
        ValueError, match="there is no stage 'jobgraph'; the stages are stream-graph"
    ):
        compile_program(env.program(), until="jobgraph")


def test_compile_program_restores_garbage_collection(env: Any, source: Any) -> None:
    with pytest.raises(StreamGraphError):
        compile_program(env.program())
    assert gc.isenabled()
    gc.disable()
    try:
        source(env).map(str)
        compile_program(env.program(), until="job-graph")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_pass_without_its_input_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="before the pass that produces its input"):
        required(None)
