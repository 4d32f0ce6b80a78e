"""The last step: from the form to source text, with the operator of each line.

No rule looks at text. This step prints the additional statements as Python. An `if` at the end of a loop's body becomes
`if not ...: continue`, so that text does not move to the right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.source_text import text_of, text_of_target
from opchain.runtime.errors import one_line_name
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Sequence


INDENT = "    "


@dataclass(slots=True)
class Text:
    """Lines of source, and the operator that each of them runs (see VertexProgram.lines)."""

    lines: list[str] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)

    def add(self, depth: int, line: str, operator: int = NO_OPERATOR) -> None:
        """Adds a line."""
        self.lines.append(INDENT * depth + line if line else "")
        self.operators.append(operator)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def shown(form: f.Form) -> Text:
    """The module's text."""
    text = Text()
    for function in form.functions:
        if text.lines:
            text.add(0, "")
            text.add(0, "")
        _Function(text, function).show()
    return text


class _Function:
    def __init__(self, text: Text, function: f.Function) -> None:
        self._text = text
        self._function = function

    def show(self) -> None:
        function, text = self._function, self._text
        text.add(0, f"def {function.name}({function.arguments}):")
        words = one_line_name(function.about.replace("\\", "/").replace('"', "'"), 90)
        text.add(1, f'"""{words}."""')
        if function.fallback is not None and function.guards:
            test = ast.BoolOp(ast.And(), function.guards)
            guard = test if len(function.guards) > 1 else function.guards[0]
            text.add(1, f"if {_negated(guard)}:")
            call = f"{function.fallback}({function.arguments})"
            text.add(2, f"return (yield from {call})" if function.takes_turns else f"return {call}")
        ends = None if function.is_batch else "return"
        whole = [*function.before, *function.body, *function.after, *function.at_end]
        self.block(whole, 1, ends)

    def block(self, block: Sequence[ast.stmt], depth: int, ends: str | None) -> None:
        """Writes a suite. `ends` is the statement that leaves the suite, if no statement follows it."""
        shown = self._text.lines
        before = len(shown)
        for position, statement in enumerate(block):
            is_last = position + 1 == len(block)
            self._statement(statement, depth, ends if is_last else None)
        if len(shown) == before and depth:
            self._text.add(depth, "pass")

    def _statement(self, statement: ast.stmt, depth: int, ends: str | None) -> None:
        write = getattr(self, f"_write_{type(statement).__name__.lower()}", None)
        if write is not None:
            write(statement, depth, ends)
            return
        written = text_of(statement).split("\n")
        for number, line in enumerate(written):
            self.line(depth, line, statement, is_first=number == 0)

    def line(self, depth: int, line: str, statement: ast.stmt, *, is_first: bool = True) -> None:
        """Writes a line of a statement, the first with its comment."""
        comment = _comment(statement) if is_first else None
        self._text.add(
            depth, f"{line}  # {comment}" if comment else line, notes.operator(statement)
        )

    # Python's statements with suites

    def _write_if(self, statement: ast.If, depth: int, ends: str | None, word: str = "if") -> None:
        test = statement.test
        if ends and not statement.orelse:
            self.line(depth, f"if {_negated(test)}:", statement)
            self._text.add(depth + 1, ends)
            self.block(statement.body, depth, ends)
            return
        self.line(depth, f"{word} {text_of(test)}:", statement)
        self.block(statement.body, depth + 1, ends)
        if ends and statement.orelse:
            if not _leaves(statement.body):
                self._text.add(depth + 1, ends)
            self.block(statement.orelse, depth, ends)
        elif len(statement.orelse) == 1 and type(other := statement.orelse[0]) is ast.If:
            self._write_if(other, depth, None, "elif")
        elif statement.orelse:
            self._text.add(depth, "else:")
            self.block(statement.orelse, depth + 1, ends)

    def _write_for(self, statement: ast.For, depth: int, _ends: str | None) -> None:
        head = f"for {text_of_target(statement.target)} in {text_of(statement.iter)}:"
        self.line(depth, head, statement)
        self.block(statement.body, depth + 1, "continue")
        self._optional("else:", statement.orelse, depth)

    def _write_while(self, statement: ast.While, depth: int, _ends: str | None) -> None:
        self.line(depth, f"while {text_of(statement.test)}:", statement)
        self.block(statement.body, depth + 1, "continue")
        self._optional("else:", statement.orelse, depth)

    def _write_with(self, statement: ast.With, depth: int, _ends: str | None) -> None:
        self.line(depth, f"with {', '.join(map(text_of, statement.items))}:", statement)
        self.block(statement.body, depth + 1, None)

    def _write_try(self, statement: ast.Try, depth: int, ends: str | None) -> None:
        if not (statement.handlers or statement.finalbody):  # nobody reads what `finally` has set
            self.block([*statement.body, *statement.orelse], depth, ends)
            return
        self.line(depth, "try:", statement)
        self.block(statement.body, depth + 1, None)
        for handler in statement.handlers:
            kind = "" if handler.type is None else f" {text_of(handler.type)}"
            name = f" as {handler.name}" if handler.name else ""
            self._text.add(depth, f"except{kind}{name}:", notes.operator(statement))
            self.block(handler.body, depth + 1, None)
        self._optional("else:", statement.orelse, depth)
        self._optional("finally:", statement.finalbody, depth)

    def _optional(self, head: str, block: f.Lines, depth: int) -> None:
        if block:
            self._text.add(depth, head)
            self.block(block, depth + 1, None)

    # Ours

    def _write_foreachresult(
        self, statement: f.ForEachResult, depth: int, _ends: str | None
    ) -> None:
        operator, iterable = notes.operator(statement), text_of(statement.iterable)
        target = statement.target.id
        if statement.nullable:
            found = f"found_{operator}"
            self.line(depth, f"{found} = {iterable}", statement)
            self._text.add(depth, f"for {target} in () if {found} is None else {found}:", operator)
        else:
            self.line(depth, f"for {target} in {iterable}:", statement)
        if statement.side is not None:
            self._text.add(depth + 1, f"if {f.is_tagged(target)}:", operator)
            for inner in statement.side:
                self._statement(inner, depth + 2, None)
            self._text.add(depth + 2, "continue")
        self.block(statement.body, depth + 1, "continue")

    def _write_copyifmutable(
        self, statement: f.CopyIfMutable, depth: int, _ends: str | None
    ) -> None:
        kept, operator = statement.target.id, notes.operator(statement)
        self._text.add(depth, f"if {kept}.__class__ not in IMMUTABLE:", operator)
        self._text.add(depth + 1, f"{kept} = own_copy({kept})", operator)

    def _write_send(self, statement: f.Send, depth: int, _ends: str | None) -> None:
        number, operator = statement.number, notes.operator(statement)
        if statement.key is not None:
            key = text_of(statement.key)
            self._text.add(depth, f"keys_{number}.append({key})", FIRST_OUTPUT - number)
        self.line(depth, f"values_{number}.append({text_of(statement.value)})", statement)
        if statement.time is not None:
            time = text_of(statement.time)
            self._text.add(depth, f"timestamps_{number}.append({time})", operator)

    def _write_convert(self, statement: f.Convert, depth: int, _ends: str | None) -> None:
        converted = f"{statement.convert}({text_of(statement.value)})"
        self.line(depth, f"{statement.target.id} = {converted}", statement)

    def _write_append(self, statement: f.Append, depth: int, _ends: str | None) -> None:
        self.line(depth, f"{statement.list}.append({text_of(statement.value)})", statement)

    def _write_count(self, statement: f.Count, depth: int, _ends: str | None) -> None:
        self._text.add(depth, f"op_{notes.operator(statement)}.{statement.what} += 1")

    def _write_fold(self, statement: f.Fold, depth: int, _ends: str | None) -> None:
        key, previous, operator = statement.key.id, statement.previous, notes.operator(statement)
        value = text_of(statement.first or statement.value)
        reduced = text_of(statement.reduced) if statement.reduced is not None else ""
        self.line(depth, f"{previous} = {statement.table}.get({key})", statement)
        if statement.target is None:
            self._text.add(depth, f"{statement.table}[{key}] = (", operator)
            self._text.add(depth + 1, f"{value} if {previous} is None else {reduced}", operator)
            self._text.add(depth, ")", operator)
            return
        result = statement.target.id
        self._text.add(depth, f"if {previous} is None:", operator)
        self._text.add(depth + 1, f"{result} = {value}", operator)
        self._text.add(depth, "else:", operator)
        if statement.body is not None:
            self.block(statement.body, depth + 1, None)
        else:
            self._text.add(depth + 1, f"{result} = {reduced}", operator)
        self._text.add(depth, f"{statement.table}[{key}] = {result}", operator)


def _comment(statement: ast.stmt) -> str | None:
    """A statement's comment, and the user's line where it comes from an inlined function.

    A traceback shows the line of generated code with its comment, and so the user's line.
    """
    comment, place = notes.comment(statement), _user_line(statement)
    if place is None or (comment is not None and place in comment):
        return comment
    return place if comment is None else f"{comment}, {place}"


def _user_line(statement: ast.stmt) -> str | None:
    """`job.py:8` of the first expression that was inlined; suites below the statement are not looked at."""
    place = notes.user_line(statement)
    if place is not None:
        return place
    heads = (part for _, part in ast.iter_fields(statement) if isinstance(part, ast.expr))
    nodes = (node for head in heads for node in ast.walk(head))
    return next(filter(None, map(notes.user_line, nodes)), None)


def _operand(node: ast.expr) -> str:
    text = text_of(node)
    return (
        text
        if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
        else f"({text})"
    )


def _negated(test: ast.expr) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return text_of(test.operand)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        other = ast.IsNot() if isinstance(test.ops[0], ast.Is) else ast.Is()
        if len(test.ops) == 1:
            return text_of(ast.Compare(test.left, [other], test.comparators))
    return f"not {_operand(test)}"


def _leaves(block: f.Lines) -> bool:
    return bool(block) and isinstance(block[-1], (ast.Continue, ast.Break, ast.Return, ast.Raise))
