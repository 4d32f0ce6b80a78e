"""Compiles a chain of operators to a generated module, in three steps: lower, rewrite, show.

    def process_0(values):
        for value in values:
            value_1 = parse_1(value)  # 1 Map 'parse' (job.py:12)
            if not is_click_2(value_1):  # 2 Filter 'is_click' (job.py:13)
                continue
            keys_0.append(user_0(value_1))
            values_0.append(value_1)  # -> Keyed Reduce by user

Measured (map, filter, flat map on ints, one core), in million records/s: an object per record through collect() 0.65,
nested push closures 2.4, stacked generators 2.3, this loop 3.5.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.lower import lowered
from opchain.compiler.codegen.rules import RULES
from opchain.compiler.codegen.rules.send_fields import send_fields
from opchain.compiler.codegen.show import shown
from opchain.compiler.codegen.static_types import SentRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.window_folds import WindowFold
    from opchain.compiler.codegen.window_selections import WindowSelection
    from opchain.runtime.program.vertex_program import VertexProgram


@dataclass(frozen=True, slots=True)
class GeneratedVertex:
    """A generated module: its text, the operator of each line, the objects of its names, and the types that it sends.

    `remarks` say, by operator, what rules did or why they could not.
    """

    source: str
    lines: tuple[int, ...]
    names: dict[str, tuple[Any, ...]]
    sent: tuple[SentRecords, ...] = ()
    remarks: dict[int, list[str]] = field(default_factory=dict)


def generate_vertex(
    program: VertexProgram,
    *,
    inline: bool = True,
    received: Mapping[int, SentRecords] | None = None,
    window_folds: Mapping[int, WindowFold | WindowSelection] | None = None,
    readers: Mapping[int, tuple[VertexProgram, int]] | None = None,
    until: str | None = None,
    without: Collection[str] = (),
) -> GeneratedVertex:
    """Generates the source of a vertex's chain.

    `inline` inlines functions if this is provably equivalent. `received` is the static information about the records of
    each input. `window_folds` says how readers fold records into windows. `readers` has the reader of each output that has only
    one, and the number of its input. `until` is the name of the last rule to apply, `without` has names of rules to omit.
    """
    rewrite = partial(_rewrite, inline=inline, without=without)
    form = f.Form(program, received=received or {})
    form.window_folds.update(window_folds or {})
    if send_fields.__name__ not in without:
        form.reader_of = partial(_reader, readers or {}, rewrite)
    lowered(form)
    rewrite(form, until)
    text = shown(form)
    source = str(text)
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    names = {name: what for name, what in sorted(form.names.bindings.items()) if name in used}
    for shared in ("IMMUTABLE", "own_copy", "ABSENT", "is_tagged"):
        if shared in used:
            names.setdefault(shared, ("shared",))
    sent = tuple(form.sent.get(number, SentRecords()) for number in range(len(program.outputs)))
    return GeneratedVertex(
        source, tuple(text.operators), dict(sorted(names.items())), sent, form.remarks
    )


def _rewrite(form: f.Form, until: str | None, *, inline: bool, without: Collection[str]) -> None:
    """Applies the rules up to the last place of the rule `until`; all of them if it is None."""
    last = max(
        (place for place, rule in enumerate(RULES) if rule.name == until), default=len(RULES)
    )
    for rule in RULES[: last + 1]:
        if (inline or not rule.inlines) and rule.name not in without:
            rule.apply(form)
            if rule.holds is not None:
                rule.holds(form)


def _reader(
    readers: Mapping[int, tuple[VertexProgram, int]],
    rewrite: Callable[[f.Form, str], None],
    output: int,
    records: StaticType,
    until: str,
) -> f.Reader | None:
    """The reader of an output, rewritten up to a rule for records of some type. None if there are several readers."""
    if output not in readers:
        return None
    program, number = readers[output]
    form = f.Form(program, received={number: SentRecords(records)})
    lowered(form)
    rewrite(form, until)
    name = f"process_{number}"
    function = next((each for each in form.functions if each.name == name), None)
    return None if function is None else f.Reader(form, function)
