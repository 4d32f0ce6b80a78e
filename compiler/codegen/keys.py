"""The keys of operators and outputs, and which tuples need a state key of their own."""

from __future__ import annotations

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.static_types import StaticType, TupleOf
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR, KeyProgram
from opchain.runtime.state.keys.key_identity import key_identity

_MOST_FIELDS = 4
"""With more fields of unknown types, a call is as fast as checking them."""


def key_program(form: f.Form, operator: int) -> KeyProgram | None:
    """The key of an operator's input, or of the output that a statement sends records to."""
    if operator < NO_OPERATOR:
        return form.program.outputs[FIRST_OUTPUT - operator].key
    keys = form.program.operators[operator].keys
    return keys[0] if keys else None


def fields_looked_at(form: f.Form, operator: int, key: str, kind: StaticType | None) -> str | None:
    """A condition that is true if a tuple may need a state key, by its fields of unknown types; None for other keys."""
    program = key_program(form, operator)
    if program is None or not isinstance(kind, TupleOf) or not kind.items:
        return None
    plain = key_identity(program.hasher).plain_fields
    unknown = [place for place, item in enumerate(kind.items) if item not in plain]
    if not plain or len(unknown) > _MOST_FIELDS:
        return None
    what: tuple[str, int] = ("plain_fields", operator)
    if operator < NO_OPERATOR:
        what = ("output_plain_fields", FIRST_OUTPUT - operator)
    name = form.names.bind(f"plain_fields_{f.suffix_of(operator)}", *what)
    # At least one field is checked, because no class is plain for a SubtaskKeyCheck.
    places = unknown or [0]
    return " or ".join(f"{key}[{place}].__class__ not in {name}" for place in places)
