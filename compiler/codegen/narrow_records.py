"""The fields of a record that a fold has to store."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.displays import Display, FieldReads, display_of
from opchain.compiler.codegen.keys import key_program
from opchain.compiler.codegen.static_types import StaticType, never_raises, type_of
from opchain.runtime.records.columns import Shape
from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Narrow:
    """A record, and the fields that are stored: as a tuple, or as a single value if it `is_alone`.

    Attributes:
        key: The position of the key. None if the key is stored too.
        stored: The positions of the stored fields.
        is_alone: Whether the state is a single field instead of a tuple.
        display: The input record.
        changed: The new values of the fields, as expressions over `previous` and variables.
        result: The emitted record.
    """

    key: int | None
    stored: tuple[int, ...]
    is_alone: bool
    display: Display
    changed: tuple[ast.expr, ...]
    result: Display

    @property
    def elements(self) -> Sequence[ast.expr]:
        """The fields of the input record."""
        return self.display.elements

    @property
    def layout(self) -> tuple[Any, ...]:
        """For each field: "key", "sum", the number of a stored field, or the constant in a tuple."""
        return tuple(
            "key"
            if position == self.key
            else (element.value,)  # type: ignore[attr-defined]
            if position not in self.stored
            else "sum"
            if self.is_alone
            else self.stored.index(position)
            for position, element in enumerate(self.elements)
        )

    def state(self, elements: Sequence[ast.expr]) -> ast.expr:
        """The expression of the stored value."""
        return elements[0] if self.is_alone else ast.Tuple(list(elements), ast.Load())

    def parts(self, state: ast.expr) -> dict[int, ast.expr]:
        """The stored fields."""
        if self.is_alone:
            return {self.stored[0]: state}
        whole = Display(self.changed)
        return {field: whole.read(state, place) for place, field in enumerate(self.stored)}

    def added(self, previous: str, fields: dict[int, ast.expr]) -> ast.expr:
        """The new state. `fields` are the old fields."""
        known = dict(enumerate(self.elements)) | fields
        transformer = FieldReads(by_place(self.display, self.result), previous, known)
        return self.state([transformer.visit(f.replaced(item, {})) for item in self.changed])


def by_place(first: Display, later: Display) -> Display:
    """A display that reads both records; by position if their names differ."""
    return first if first.shape == later.shape else Display(first.elements, Shape(Row))


def narrowed(  # noqa: PLR0911 - one for each condition
    form: f.Form,
    function: f.Function,
    fold: f.Fold,
    types: dict[str, StaticType | None],
    *,
    keeps_key: bool = False,
) -> Narrow | None:
    """What is stored of the records of a fold, in any case the key if it `keeps_key`. None if they are stored whole."""
    index = notes.operator(fold)
    display, result = (display_of(item, form.constants) for item in (fold.value, fold.reduced))
    program = key_program(form, index)
    if display is None or result is None or program is None or display.names or result.names:
        return None
    elements = display.elements
    kinds = {getattr(item.shape, "kind", tuple) for item in (display, result)}
    has_names = {bool(item.shape and item.shape.names) for item in (display, result)}
    if len(elements) != len(result.elements) or len(kinds) > 1:
        return None
    if display.shape != result.shape and (kinds != {Row} or len(has_names) == 1):
        return None
    whole = by_place(display, result)
    key = None if keeps_key else _key_position(function, fold, elements)
    if key is not None:
        kind = type_of(elements[key], types)
        if kind not in (int, str) or kind not in key_identity(program.hasher).plain:
            key = None
    same = {
        position
        for position, item in enumerate(result.elements)
        if whole.field_read(item, fold.previous) == position
        or (
            (position == key or isinstance(item, ast.Constant))
            and ast.dump(item) == ast.dump(elements[position])
        )
    }
    stored = tuple(
        position
        for position, element in enumerate(elements)
        if not (position in same and (position == key or isinstance(element, ast.Constant)))
    )
    if not stored:
        return None
    changed = tuple(result.elements[position] for position in stored)
    found = Narrow(key if key in same else None, stored, False, display, changed, result)
    if f.reads(found.added(fold.previous, {p: ast.Constant(0) for p in stored}), fold.previous):
        return None
    kind = type_of(elements[stored[0]], types)
    alone = replace(found, is_alone=True)
    probe = alone.added(fold.previous, {stored[0]: f.name("total")}) if len(stored) == 1 else None
    known = {**types, "total": kind}
    if (
        probe is not None
        and kind in (int, float, str)
        and type_of(probe, known) is kind
        and never_raises(probe, known)
    ):
        return alone
    return None if display.shape is None else found


def _key_position(function: f.Function, fold: f.Fold, elements: Sequence[ast.expr]) -> int | None:
    """The field that is the key."""
    names = (_selected(function, fold.key.id), fold.key.id)
    for position, element in enumerate(elements):
        if isinstance(element, ast.Name) and element.id in names:
            return position
    return None


def _selected(function: f.Function, key: str) -> str | None:
    """The variable that a key was assigned from."""
    for variable, value in f.assignments(f.all_statements(function.body)):
        if variable == key and isinstance(value, ast.Name):
            return value.id
    return None
