"""The intermediate form of a vertex: functions whose statements are Python's `ast` nodes, and a few additional nodes.

The additional nodes represent what a chain does with records, so rules need not recognize this in Python code:

| statement | meaning | printed as |
|---|---|---|
| `ForEachResult` | one record for each item of an iterable | `for value_1 in ...:` |
| `CopyIfMutable` | copy a record that other code could change | `if x.__class__ not in IMMUTABLE: x = own_copy(x)` |
| `Send` | send a record to an exchange | `keys_0.append(...)`, `values_0.append(...)` |
| `Fold` | combine a record with the entry of its key | `previous = table.get(key)` ... |
| `Convert` | convert a record to its declared type | `row = as_declared_1(value_1)` |
| `Append` | append a value to a list | `values_0.append(value)` |
| `Count` | count a record that enters or leaves an operator | `op_1.records_in += 1` |

A filter is an `if` around everything downstream. `show` prints it as `continue` if it ends the body of a loop. Every
statement has the index of its operator, and may have other notes (notes.py).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.compiler.codegen import notes
from opchain.compiler.codegen.names import Names, stem
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR, VertexProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opchain.compiler.codegen.static_types import SentRecords, StaticType
    from opchain.compiler.codegen.window_folds import WindowFold
    from opchain.compiler.codegen.window_selections import WindowSelection

    Change = Callable[[ast.AST], "ast.AST | Lines | None"]
    """What replaces a node. None to keep the node."""

Node = TypeVar("Node", bound=ast.AST)
Tree = TypeVar("Tree", bound="ast.AST | list[Any]")
Lines = list[ast.stmt]


class ForEachResult(ast.stmt):
    """A loop over the results of an operator for one record.

    `side` is the block for (tag, value) pairs; None if pairs are normal records. `by_tag` has a variable and a block
    for each known tag, by id. If the loop is `nullable`, an iterable that is None emits nothing.
    """

    _fields = ("target", "iterable", "side", "body")
    target: ast.Name
    iterable: ast.expr
    side: Lines | None
    body: Lines
    nullable: bool = False
    by_tag: dict[str, tuple[str, Lines]]


class CopyIfMutable(ast.stmt):
    """Copies a record, unless its class is immutable."""

    _fields = ("target",)
    target: ast.Name


class Send(ast.stmt):
    """Sends a record, its key and its timestamp to output `number`."""

    _fields = ("value", "key", "time")
    number: int
    value: ast.expr
    key: ast.expr | None
    time: ast.expr | None


class Fold(ast.stmt):
    """`table[key] = value` or, if the key has an entry, `table[key] = reduced`.

    `previous` is the variable of the old entry. The result is in the variable `target`; None if it is not used. If
    reducing takes statements, they are in `body`, which sets `target`. If `first` is set, it is a call that checks and
    returns the value of a key without an entry.
    """

    _fields = ("key", "value", "first", "body", "reduced", "target")
    table: str
    previous: str
    key: ast.Name
    value: ast.expr
    first: ast.expr | None = None
    body: Lines | None = None
    reduced: ast.expr | None
    target: ast.Name | None


class Convert(ast.stmt):
    """Converts a record to the declared type of its operator, or of a side output, in the variable `target`.

    `convert` is the name of the converter.
    """

    _fields = ("value", "target")
    target: ast.Name
    value: ast.expr
    convert: str
    tag: str | None


class Append(ast.stmt):
    """`list.append(value)`. `sink` is the index of the sink of the list, if it has one."""

    _fields = ("value",)
    list: str
    value: ast.expr


class Count(ast.stmt):
    """Adds one to the counter `what` ("records_in", "records_out") of its operator."""

    _fields = ()
    what: str


def made(kind: type[Node], **attributes: Any) -> Node:
    """Creates an additional statement."""
    node = kind()
    for name, value in attributes.items():
        setattr(node, name, value)
    return node


@dataclass(slots=True)
class Callee:
    """A user's function that a name in generated code refers to.

    `path` says how an executor finds it (see task.generated_code). `owner` is the name of the object whose method it
    is.
    """

    function: Any
    path: tuple[Any, ...]
    owner: str | None = None
    instance: Any = None


@dataclass(slots=True)
class Function:
    """A function of the generated module.

    If a batch does not fulfil the `guards`, `fallback` processes the batch. `before` and `after` surround the loop over
    the batch. `at_end` are calls after everything else. A function that `takes_turns` is a generator.
    """

    name: str
    arguments: str
    about: str
    body: Lines
    is_batch: bool = False
    guards: list[ast.expr] = field(default_factory=list)
    fallback: str | None = None
    before: Lines = field(default_factory=list)
    after: Lines = field(default_factory=list)
    at_end: Lines = field(default_factory=list)
    types: dict[str, StaticType | None] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    takes_turns: bool = False

    @property
    def kind(self) -> str:
        """What the function is for: "process", "fallback", "batch", "emit", "fire"."""
        return self.name.partition("_")[0]

    @property
    def suffix(self) -> str:
        """The suffix of the function's names: "0" for `process_0`."""
        return self.name.removeprefix("process_")

    def copy(self) -> Function:
        """A copy with its own statements."""
        code = ("body", "guards", "before", "after", "at_end")
        changed: Any = {part: copied(getattr(self, part)) for part in code}
        return replace(self, **changed, types=dict(self.types), fresh=set(self.fresh))

    def variables_of_a_record(self, block: Lines) -> list[str]:
        """The variables that a block sets for one record. Others, such as the greatest timestamp, last for the batch."""
        lasting = stores(self.before)
        return [name for name in stores(block) if name not in lasting]


@dataclass(slots=True)
class Form:
    """The code of a vertex while rules rewrite it.

    `received` is the static information about the records of each input. `window_folds` has, by output, how the windows of its
    reader fold records, if senders may fold them. `reader_of` compiles the only reader of an output, up to a rule, for records of
    some type. The code `assumes_values` if it has values of global names or of classes, which may differ on executors.
    `remarks` collect, by operator, what rules did or why they could not.
    """

    program: VertexProgram
    functions: list[Function] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    callees: dict[str, Callee] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    aggregations: dict[str, Any] = field(default_factory=dict)
    received: Mapping[int, SentRecords] = field(default_factory=dict)
    sent: dict[int, SentRecords] = field(default_factory=dict)
    window_folds: dict[int, WindowFold | WindowSelection] = field(default_factory=dict)
    reader_of: Callable[[int, StaticType, str], Reader | None] = lambda *_: None
    assumes_values: bool = False
    remarks: dict[int, list[str]] = field(default_factory=dict)

    @property
    def takes_turns(self) -> bool:
        """Whether the functions of two inputs may alternate. Then neither may cache what both of them change."""
        keys = self.program.operators[0].keys
        return self.program.is_batch and sum(key is not None for key in keys) > 1

    def remark(self, operator: int, text: str) -> None:
        """Records what a rule did to an operator, or why it could not."""
        known = self.remarks.setdefault(operator, [])
        if text not in known:
            known.append(text)

    def sends(self, number: int) -> list[tuple[Function, Send]]:
        """The statements that send to an output, each with its function."""
        return [
            (function, item)
            for function in self.functions
            for item in all_statements(function.body)
            if isinstance(item, Send) and item.number == number
        ]

    def batch_functions(self) -> list[Function]:
        """The functions over batches of the head's inputs."""
        return [function for function in self.functions if function.is_batch]


@dataclass(frozen=True, slots=True)
class Reader:
    """The form of a vertex that reads an output, and the function that gets the records."""

    form: Form
    function: Function


def add_fallback(form: Form, function: Function, plain: Function | None = None) -> Function:
    """Adds a fallback to a function, for batches that do not fulfil its guards, and returns it.

    The fallback is `plain`, or a copy of the function in its current state.
    """
    plain = plain or function.copy()
    plain.guards, plain.fallback = [], None
    insert_fallback(form, function, plain, "fallback")
    return plain


def insert_fallback(form: Form, function: Function, plain: Function, kind: str) -> None:
    """Has another form of a function process the batches that do not fulfil the function's guards."""
    plain.name = f"{kind}_{function.suffix}"
    function.fallback = plain.name
    form.functions.insert(form.functions.index(function) + 1, plain)


# Creating statements


def name(text: str) -> ast.Name:
    """The node that reads a variable."""
    return ast.Name(text, ast.Load())


def target(text: str) -> ast.Name:
    """The node that sets a variable."""
    return ast.Name(text, ast.Store())


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """Parses an expression, and replaces some names in it by other expressions.

    >>> text_of(expression("x % size", x=name("value"), size=ast.Constant(3)))
    'value % 3'
    """
    return replaced(ast.parse(text, mode="eval").body, parts)


def statements(text: str, operator: int, **parts: ast.expr) -> Lines:
    """Parses statements of an operator, and replaces some names in them by expressions."""
    found = [replaced(statement, parts) for statement in ast.parse(text).body]
    return marked(found, operator)


def let(variable: str, value: ast.expr, operator: int) -> ast.stmt:
    """The statement `variable = value`."""
    statement = ast.Assign([target(variable)], value, lineno=0)
    notes.operator.set(statement, operator)
    return statement


def in_variables(
    elements: Iterable[ast.expr],
    is_kept: Callable[[int, ast.expr], bool],
    variable_of: Callable[[int], str],
    operator: int,
) -> tuple[Lines, list[ast.expr]]:
    """Assigns the elements of a record to variables, except those that are kept.

    Returns the assignments, and the elements, with the variables in place of the expressions.
    """
    lines: Lines = []
    found: list[ast.expr] = []
    for position, item in enumerate(elements):
        if is_kept(position, item):
            found.append(item)
            continue
        variable = variable_of(position)
        lines.append(let(variable, item, operator))
        found.append(name(variable))
    return lines, found


def is_simple(_position: int, item: ast.expr) -> bool:
    """Whether an element is a variable or a constant already."""
    return isinstance(item, (ast.Name, ast.Constant))


def marked(found: Lines, operator: int) -> Lines:
    """Sets the operator of all statements that have none."""
    for node in nodes(found):
        if isinstance(node, ast.stmt) and not hasattr(node, notes.operator.name):
            notes.operator.set(node, operator)
    return found


def placed(made: Tree, replaced_node: ast.AST) -> Tree:
    """Gives an expression, or a block, the user's line of the node that it replaces."""
    line = next(filter(None, map(notes.user_line, ast.walk(replaced_node))), None)
    found: Iterable[ast.AST] = all_statements(made) if isinstance(made, list) else [made]
    for node in found if line is not None else ():
        notes.user_line.set(node, line)
    return made


def suffix_of(operator: int) -> str:
    """How the variables of an operator's code end: its index, or `to_0` for the code of an output."""
    return f"to_{FIRST_OUTPUT - operator}" if operator < NO_OPERATOR else f"{operator}"


def with_comment(found: Lines, comment: str | None) -> Lines:
    """Adds a comment to the first of the statements."""
    shown = [statement for statement in found if not isinstance(statement, (CopyIfMutable, Count))]
    if shown and comment:
        own = notes.comment(shown[0])
        both = comment if own in (None, comment) else f"{comment}, {own}".replace(", ->", " ->")
        notes.comment.set(shown[0], both)
    return found


def is_tagged(variable: str) -> str:
    """The condition that a result is a (tag, value) pair. The first field of most other pairs shows it without a call."""
    is_pair = f"{variable}.__class__ is tuple and len({variable}) == 2"
    return f"{is_pair} and {variable}[0].__class__ not in IMMUTABLE and is_tagged({variable})"


# Inspecting and changing statements


_BLOCKS = ("side", "body", "orelse", "finalbody")

_WITHOUT_NODES = {"attr", "ctx", "id", "kind", "kwd_attrs", "names", "op", "ops"}
"""Fields with text, or with nodes that have no fields."""


@cache
def _part_names(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that may have nodes."""
    return tuple(part for part in fields if part not in _WITHOUT_NODES)


def blocks(statement: ast.AST) -> Iterator[Lines]:
    """The blocks of a statement."""
    for part in _BLOCKS:
        if part in statement._fields:
            block = getattr(statement, part, None)
            if isinstance(block, list):
                yield block
    if "handlers" in statement._fields:
        for handler in statement.handlers:  # type: ignore[attr-defined]
            yield handler.body


def all_statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block with all nested statements, in the order of the text."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from all_statements(inner)


def all_blocks(block: Lines) -> list[Lines]:
    """A block, and the blocks of all its statements."""
    return [block, *(inner for item in all_statements(block) for inner in blocks(item))]


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, as `ast.walk` in a third of the time, without contexts and operators, which have no fields."""
    found = [root]
    for node in found:
        for part_name in _part_names(node._fields):
            part = getattr(node, part_name, None)
            if not part:
                continue
            if isinstance(part, list):
                found += filter(None, part)  # a key of `{**other}` is None
            elif isinstance(part, ast.AST):
                found.append(part)
        yield node


def nodes(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a block's trees."""
    return (node for item in block for node in walk(item))


def names_in(block: Iterable[ast.AST]) -> set[str]:
    """The variables that a block reads or sets, and the names that it calls."""
    return {node.id for node in nodes(block) if isinstance(node, ast.Name)}


def variable_set(statement: ast.AST | None) -> str:
    """The variable of `variable = value`. Empty for any other statement."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id if len(statement.targets) == 1 else ""
    return ""


def assignments(found: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The variable and the value of each `variable = value` among some nodes."""
    for node in found:
        variable = variable_set(node)
        if variable and isinstance(node, ast.Assign):
            yield variable, node.value


def selects_key(statement: ast.stmt) -> bool:
    """Whether a statement calls the selector of a key that is sent with the record, before it is sent."""
    return stem(variable_set(statement)) == "sent_key"


def values_set_once(block: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """The values of the variables that are set once, by `variable = value`."""
    set_in = stores(block)
    return {
        variable: value
        for variable, value in assignments(all_statements(block))
        if set_in[variable] == 1
    }


def own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of nested statements."""
    for _, value in ast.iter_fields(statement):
        if isinstance(value, ast.expr):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.expr))
    for handler in getattr(statement, "handlers", ()):
        if handler.type is not None:
            yield handler.type
    for item in statement.items if isinstance(statement, ast.With) else ():
        yield from filter(None, (item.context_expr, item.optional_vars))


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of these expressions."""
    return nodes(own_expressions(statement))


def is_load_of(node: ast.AST, variable: str) -> bool:
    """Whether a node reads a variable."""
    return isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Load)


def reads(node: ast.AST | Sequence[ast.AST], variable: str) -> int:
    """How often a variable is read."""
    found = walk(node) if isinstance(node, ast.AST) else nodes(node)
    return sum(is_load_of(item, variable) for item in found)


def flattened(found: Iterable[ast.stmt | Lines]) -> Lines:
    """Flattens statements, some of which are lists of statements."""
    return [line for item in found for line in (item if isinstance(item, list) else [item])]


def calls_of(block: Sequence[ast.stmt], names: set[str]) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """The calls of some names with one argument, each with its statement."""
    for statement in all_statements(block):
        for node in own_nodes(statement):
            if is_call_of(node, names):
                yield statement, node  # type: ignore[misc]


def called(node: ast.AST) -> str:
    """The name that an expression calls. Empty for any other expression."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if is_call else ""  # type: ignore[attr-defined]


def is_call_of(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression calls one of these names with one argument."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return name in names and not isinstance(argument, ast.Starred)
    return False


def stores(block: Sequence[ast.stmt]) -> dict[str, int]:
    """How often each variable is set or deleted in a block. A copy of a record does not count.

    The variable of a caught error counts twice, because it is deleted at the end of the handler.
    """
    found: dict[str, int] = {}
    copied: set[int] = set()
    for node in nodes(block):
        name, times = None, 1
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in copied:
                name = node.id
        elif isinstance(node, CopyIfMutable):
            copied.add(id(node.target))  # it is walked later than its statement
        elif isinstance(node, ast.ExceptHandler):
            name, times = node.name, 2
        for each in [name, *imported(node)]:
            if each is not None:
                found[each] = found.get(each, 0) + times
    return found


def appended(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """The list that gets a record, and the record; nothing for a statement that appends no record."""
    if isinstance(statement, Send):
        return f"values_{statement.number}", statement.value
    return (statement.list, statement.value) if isinstance(statement, Append) else ("", None)


def imported(node: ast.AST) -> list[str]:
    """The variables that an `import` sets."""
    names = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []
    return [alias.asname or alias.name for alias in names]


def rewritten(block: Lines, rewrite: Callable[[ast.stmt], Lines | None]) -> Lines:
    """Replaces statements of a block, innermost first. A replacement of None keeps the statement.

    The comment of a removed statement goes to the operator's next statement.
    """
    done: Lines = []
    removed: ast.stmt | None = None
    for statement in block:
        for inner in blocks(statement):
            inner[:] = rewritten(inner, rewrite)
        found = rewrite(statement)
        found = [statement] if found is None else found
        if removed and notes.operator(removed) == notes.operator(statement):
            with_comment(found, notes.comment(removed))
        removed = None if found else statement
        done += found
    return done


def replaced_by(block: Lines, old: ast.stmt, lines: Lines) -> Lines:
    """Replaces one statement of a block, or of a nested block, by others."""
    return rewritten(block, lambda item: lines if item is old else None)


_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def copied(tree: Tree) -> Tree:
    """A copy of a node or block, as `copy.deepcopy` in a third of the time. Contexts and operators are shared."""
    return _copied(tree, {})  # type: ignore[no-any-return]


def _copied(part: Any, done: dict[int, Any]) -> Any:  # noqa: PLR0911 - one a kind of part
    """`done` has the copies by the ids of the originals: a block may be in a tree twice, as in `by_tag`."""
    if isinstance(part, ast.AST):
        if isinstance(part, _SHARED):
            return part
    elif not isinstance(part, (list, tuple, dict)):
        return part
    found = done.get(id(part))
    if found is not None:
        return found
    if isinstance(part, list):
        done[id(part)] = new_list = []
        new_list += [_copied(item, done) for item in part]
        return new_list
    if isinstance(part, tuple):
        return tuple(_copied(item, done) for item in part)
    if isinstance(part, dict):
        return {key: _copied(item, done) for key, item in part.items()}
    done[id(part)] = new = part.__class__.__new__(part.__class__)
    vars(new).update({key: _copied(item, done) for key, item in vars(part).items()})
    return new


class _Replaced(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        part = self._parts.get(node.id)
        if part is None:
            return node
        if isinstance(part, ast.Name):
            return ast.Name(part.id, node.ctx)
        return copied(part)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        part = self._parts.get(node.name or "")
        if isinstance(part, ast.Name):
            node.name = part.id
        self.generic_visit(node)
        return node

    def visit_alias(self, node: ast.alias) -> ast.alias:
        part = self._parts.get(node.asname or node.name)
        if isinstance(part, ast.Name):
            node.asname = part.id
        return node


def replaced(node: Node, parts: Mapping[str, ast.expr]) -> Node:
    """A copy of a tree with expressions instead of names."""
    found: Node = _Replaced(parts).visit(copied(node))
    return found


def forward_variables(function: Function, is_forwarded: Callable[[str, str], bool]) -> None:
    """Replaces variables that only hold the value of another variable, if `is_forwarded` says so."""
    parts: dict[str, ast.expr] = {}

    def rewrite(statement: ast.stmt) -> Lines | None:
        variable, value = variable_set(statement), getattr(statement, "value", None)
        if not (variable and isinstance(value, ast.Name) and is_forwarded(variable, value.id)):
            return None
        parts[variable] = value
        return []

    function.body = rewritten(function.body, rewrite)
    while any(isinstance(part, ast.Name) and part.id in parts for part in parts.values()):
        parts = {name: replaced(part, parts) for name, part in parts.items()}
    if parts:
        function.body = [replaced(statement, parts) for statement in function.body]


class _Changed(ast.NodeTransformer):
    def __init__(self, change: Change, *, inner_first: bool) -> None:
        self._change = change
        self._inner_first = inner_first

    def visit(self, node: ast.AST) -> Any:
        if self._inner_first:
            self.generic_visit(node)
        found = self._change(node)
        if found is not None:
            return found
        return node if self._inner_first else self.generic_visit(node)


def changed(tree: ast.AST | Lines, change: Change, *, inner_first: bool = False) -> Any:
    """A node or block with other nodes where `change` returns some.

    A node is changed before the nodes in it, which are left as they are if it is replaced; with `inner_first` after them.
    """
    visit = _Changed(change, inner_first=inner_first).visit
    return flattened(map(visit, tree)) if isinstance(tree, list) else visit(tree)


def equal_replaced(block: Lines, parts: Mapping[str, ast.expr]) -> Lines:
    """A block with equivalent expressions in place of names and calls, which are given by their text."""

    def change(node: ast.AST) -> ast.expr | None:
        is_candidate = isinstance(node, (ast.Name, ast.Call))
        return copied(parts.get(text_of(node))) if is_candidate else None  # type: ignore[type-var]

    return changed(block, change)  # type: ignore[no-any-return]


def constant_item(node: ast.expr, variable: str) -> Any:
    """The constant of `variable[constant]`; None for any other expression."""
    return node.slice.value if item_variable(node) == variable else None  # type: ignore[attr-defined]


def method_called(statement: ast.stmt, variable: str) -> tuple[str, list[ast.expr]]:
    """The method and the arguments of a statement `variable.method(...)`; nothing for any other statement."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=method), args=given, keywords=[]
            )
        ) if name == variable:
            return method, given
    return "", []


def item_variable(node: ast.expr) -> str | None:
    """The variable of `variable[constant]`."""
    match node:
        case ast.Subscript(value=ast.Name(id=variable), slice=ast.Constant()):
            return variable
    return None
