"""Generates the source code of each vertex."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen.rules import RULE_NAMES
from opchain.compiler.codegen.static_types import SentRecords
from opchain.compiler.codegen.vertex import generate_vertex
from opchain.compiler.codegen.window_folds import WindowFold, window_fold
from opchain.compiler.graph.plan import Plan, required
from opchain.runtime.errors import GraphError, InternalError
from opchain.runtime.program.vertex_program import Shipping
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.codegen.window_selections import WindowSelection
    from opchain.runtime.program.vertex_program import (
        VertexProgram,
    )


def generate_code(plan: Plan, until: str | None = None, without: Sequence[str] = ()) -> Plan:
    """Sets `source`, `names` and `lines` of each vertex program, unless code generation is disabled.

    `until` is the last rule to apply. `without` has rules to omit, in addition to those of the settings.

    Raises:
        GraphError: A rule does not exist.
    """
    settings = plan.program.settings
    if not settings.generate_code:
        return plan
    without = [*without, *filter(None, map(str.strip, settings.rules_left_out.split(",")))]
    for name in (*without, *filter(None, [until])):
        if name not in RULE_NAMES:
            raise GraphError(f"no rule is called {name!r}; the rules are {', '.join(RULE_NAMES)}")
    program = required(plan.job_program)
    vertices = []
    readers = {vertex.first_task: vertex for vertex in program.vertices}
    sent: dict[tuple[int, int], SentRecords] = {}
    for vertex in program.vertices:
        received = _received(vertex, sent)
        code = generate_vertex(
            vertex,
            inline=settings.inline_functions,
            received=received,
            window_folds=_window_folds(vertex, readers) if settings.inline_functions else None,
            readers=_only_readers(vertex, readers),
            until=until,
            without=without,
        )
        for output, traveling in zip(vertex.outputs, code.sent, strict=True):
            sent |= dict.fromkeys(output.readers, traveling)
        vertices.append(
            replace(
                vertex,
                source=code.source,
                names=code.names,
                lines=code.lines,
                remarks=tuple(
                    (index, tuple(texts)) for index, texts in sorted(code.remarks.items()) if texts
                ),
                inputs=tuple(
                    replace(edge, key_list=received.get(edge.input_number, SentRecords()).key_list)
                    for edge in vertex.inputs
                ),
            )
        )
    return replace(plan, job_program=replace(program, vertices=tuple(vertices)))


def _received(
    vertex: VertexProgram, sent: Mapping[tuple[int, int], SentRecords]
) -> dict[int, SentRecords]:
    """The known type of the records of each input, if it is the same for all of its edges."""
    found: dict[int, set[SentRecords]] = {}
    for edge in vertex.inputs:
        known = sent.get((vertex.first_task, edge.channel_base), SentRecords())
        found.setdefault(edge.input_number, set()).add(known)
    for source in vertex.chained_sources:
        found.setdefault(source.input_number, set()).add(SentRecords())
    return {number: next(iter(known)) for number, known in found.items() if len(known) == 1}


def _window_folds(
    vertex: VertexProgram, readers: Mapping[int, VertexProgram]
) -> dict[int, WindowFold | WindowSelection]:
    """By output, how the windows of its only reader fold records.

    In batch mode, the order of records changes after they are sent. So the types of all records of a window must be known,
    and no other vertex may send to it.
    """
    only = _only_readers(vertex, readers)
    found = {
        number: window_fold(readers[output.first_target])
        for number, output in enumerate(vertex.outputs)
        if output.shipping is Shipping.KEY_GROUP
        and output.key is not None
        and key_identity(output.key.hasher).plain
        and output.carries_timestamps
        and not output.others
        and (number in only or not vertex.is_batch)
    }
    return {number: fold for number, fold in found.items() if fold is not None}


def _only_readers(
    vertex: VertexProgram, readers: Mapping[int, VertexProgram]
) -> dict[int, tuple[VertexProgram, int]]:
    """By output, its reader and the number of the reader's input, if nobody else reads this output or sends to this input."""
    found = {}
    for number, output in enumerate(vertex.outputs):
        reader = readers[output.first_target]
        inputs = [edge.input_number for edge in reader.inputs]
        inputs += [source.input_number for source in reader.chained_sources]
        (target,) = (
            edge.input_number for edge in reader.inputs if edge.channel_base == output.channel_base
        )
        if not output.others and inputs.count(target) == 1:
            found[number] = reader, target
    return found


def generated_code_compiles(plan: Plan) -> None:
    """The invariant: every generated module compiles, and every line belongs to an operator."""
    for vertex in required(plan.job_program).vertices:
        if vertex.source is None:
            continue
        try:
            compile(vertex.source, vertex.file_name, "exec")
        except SyntaxError as error:
            raise InternalError(
                f"the generated code of '{vertex.name}' is not Python: {error}\n{vertex.source}"
            ) from error
        if len(vertex.lines) != vertex.source.count("\n"):
            raise InternalError(
                f"the generated code of '{vertex.name}' has lines that no operator is recorded for"
            )
