"""Records are counted once per batch, where their number is known or can be counted with others.

>>> change("count_once", lambda numbers: numbers.filter(lambda x: x > 3))
+ before_values_0 = len(values_0)
-   op_0.records_in += 1
-   op_0.records_out += 1
-   op_1.records_in += 1
-   op_1.records_out += 1
+ op_0.count(len(values), len(values))
+ op_1.count(len(values), len(values_0) - before_values_0)

The statements of one block run equally often. If every record of a batch reaches a block, the count is the batch's length.
If the block appends each record to a list, the count is the list's growth. The list need not be empty before, because a
batch may be processed in parts.
"""

from __future__ import annotations

import ast
from collections import Counter

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.names import stem, unused
from opchain.runtime.program.vertex_program import NO_OPERATOR


def count_once(form: f.Form) -> None:
    """Counts in functions over batches."""
    for function in form.batch_functions():
        _Counting(form, function).run()


def nothing_is_counted_by_record(form: f.Form) -> None:
    """No `Count` is left in a function over batches."""
    for function in form.batch_functions():
        found = [item for item in f.all_statements(function.body) if isinstance(item, f.Count)]
        assert not found, function.name


class _Counting:
    def __init__(self, form: f.Form, function: f.Function) -> None:
        self.form = form
        self.function = function
        self.found: dict[int, dict[str, list[str]]] = {}
        self.counters: list[str] = []
        self.lists: list[str] = []
        appends = Counter(f.appended(item)[0] for item in f.all_statements(function.body))
        # The functions of the other input and of side outputs also append to the lists.
        self.appends_elsewhere = form.takes_turns or any(
            isinstance(node, ast.Name) and stem(node.id) == "emit_side"
            for node in f.nodes(function.body)
        )
        self.appended_once = {name for name, times in appends.items() if name and times == 1}

    def run(self) -> None:
        function = self.function
        if not function.body and function.kind in ("process", "fallback"):
            self._note(0, "records_in", "len(values)")
        number = "len(values)" if "values" in function.arguments else None
        for loop in function.body:
            assert isinstance(loop, ast.For)
            self._segment(loop.body, number)
        for name in self.counters:
            function.before += f.statements(f"{name} = 0", NO_OPERATOR)
        for name in self.lists:
            function.before += f.statements(f"before_{name} = len({name})", NO_OPERATOR)
        for index, counted in sorted(self.found.items()):
            numbers = [
                " + ".join(counted.get(what, ())) or "0" for what in ("records_in", "records_out")
            ]
            if any(number != "0" for number in numbers):
                call = f"op_{index}.count({', '.join(numbers)})"
                function.after += f.statements(call, NO_OPERATOR)

    def _note(self, operator: int, what: str, number: str) -> None:
        self.found.setdefault(operator, {}).setdefault(what, []).append(number)

    def _segment(self, block: f.Lines, number: str | None) -> None:
        """Counts in a block that `number` records of the batch reach. None if the number is unknown."""
        done: f.Lines = []
        for position, statement in enumerate(block):
            if isinstance(statement, f.Count):
                if number is None and not self.appends_elsewhere:
                    number = self._list_of(block[position:])
                if number is None:
                    number = unused(f"count_{notes.operator(statement)}", self.counters)
                    self.counters.append(number)
                    done += f.statements(f"{number} += 1", NO_OPERATOR)
                self._note(notes.operator(statement), statement.what, number)
                continue
            for inner in f.blocks(statement):
                self._segment(inner, None)
            done.append(statement)
            if _may_leave(statement):
                number = None
        block[:] = done

    def _list_of(self, rest: f.Lines) -> str | None:
        """The list that gets exactly one entry each time this statement runs."""
        for statement in rest:
            found, _ = f.appended(statement)
            if found in self.appended_once:
                if found not in self.lists:
                    self.lists.append(found)
                return f"len({found}) - before_{found}"
            if _may_leave(statement):
                return None
        return None


def _may_leave(statement: ast.stmt) -> bool:
    """Whether a user's `continue` or `break` in a statement may skip what follows."""
    if isinstance(statement, (ast.Continue, ast.Break, ast.Return)):
        return True
    if isinstance(statement, (ast.For, ast.While)):
        return False
    return any(_may_leave(inner) for block in f.blocks(statement) for inner in block)
