"""The compiler: a table of passes in order, with the name of each stage, and the invariant that its result fulfils.

    Program -> StreamGraph -> chained edges -> operator ids -> chains -> JobGraph
      -> ExecutionPlan -> programs of vertices -> generated source

A pass is a function `Plan -> Plan` that sets the next fields of the plan. Options are in the settings of the program.
No pass reads environment variables or global state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opchain.compiler.graph.plan import Plan, Program
from opchain.compiler.passes import (
    assemble_programs,
    assign_operator_ids,
    chain_operators,
    create_job_graph,
    generate_code,
    generate_stream_graph,
    place_stages,
    set_dynamic_parallelism,
    share_data_sets,
)
from opchain.runtime.records.garbage_collection import gc_paused

if TYPE_CHECKING:
    from collections.abc import Callable


class Pass(NamedTuple):
    """A pass of the compiler.

    `stage` is the name of the field that the pass sets; the compiler can stop there. `check` raises InternalError if
    the plan breaks the invariant. It takes linear time, so it always runs.
    """

    stage: str
    run: Callable[[Plan], Plan]
    check: Callable[[Plan], None]


PASSES: tuple[Pass, ...] = (
    Pass(
        "stream-graph",
        generate_stream_graph.generate_stream_graph,
        generate_stream_graph.inputs_come_first,
    ),
    Pass("chained-edges", chain_operators.chain_operators, chain_operators.chains_are_trees),
    Pass(
        "operator-ids",
        assign_operator_ids.assign_operator_ids,
        assign_operator_ids.every_operator_has_its_own_id,
    ),
    Pass(
        "partitioners",
        chain_operators.set_partitioners,
        chain_operators.cut_edges_have_real_partitioners,
    ),
    Pass("chains", chain_operators.form_chains, chain_operators.every_operator_is_in_one_chain),
    Pass(
        "vertex-sizes",
        set_dynamic_parallelism.set_dynamic_parallelism,
        set_dynamic_parallelism.forward_edges_join_equal_sizes,
    ),
    Pass(
        "data-sets",
        share_data_sets.share_data_sets,
        share_data_sets.every_cut_edge_reads_one_data_set,
    ),
    Pass("vertex-order", create_job_graph.sort_vertices, create_job_graph.producers_come_first),
    Pass(
        "slot-groups",
        place_stages.assign_slot_sharing_groups,
        place_stages.every_vertex_is_in_a_group,
    ),
    Pass("vertex-names", create_job_graph.name_vertices, create_job_graph.every_vertex_has_a_name),
    Pass(
        "job-graph",
        create_job_graph.create_job_graph,
        create_job_graph.job_graph_holds_everything,
    ),
    Pass("execution", place_stages.place_stages, place_stages.exchanges_go_forward),
    Pass(
        "programs",
        assemble_programs.assemble_programs,
        assemble_programs.every_task_has_a_program,
    ),
    Pass("generated", generate_code.generate_code, generate_code.generated_code_compiles),
)

STAGES: tuple[str, ...] = tuple(step.stage for step in PASSES)


def compile_program(program: Program, until: str | None = None) -> Plan:
    """Runs the passes over a program: all of them, or up to a stage.

    Args:
        program: The user's program.
        until: The last stage to compile, one of STAGES. None compiles everything.

    Raises:
        GraphError: The program is invalid. `phase` says which of Flink's layers refuses it.
    """
    if until is not None and until not in STAGES:
        raise ValueError(f"there is no stage {until!r}; the stages are {', '.join(STAGES)}")
    plan = Plan(program)
    # With garbage collection the time is not linear: 3.6 s instead of 2.0 s for a chain of 100,000 operators.
    with gc_paused():
        for step in PASSES:
            plan = step.run(plan)
            step.check(plan)
            if step.stage == until:
                break
    return plan


__all__ = ["PASSES", "STAGES", "Pass", "Plan", "Program", "compile_program"]
