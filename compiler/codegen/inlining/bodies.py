"""The body of a function over the arguments of a call, with the names of the function that it is inlined into."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import (
    Definition,
    Refused,
    is_literal,
    only_calls_builtins,
)
from opchain.compiler.codegen.inlining.checks import (
    check_body,
    check_line,
    check_set_before_read,
    comprehended,
)
from opchain.compiler.codegen.inlining.free_names import Attributes, bind_free_names
from opchain.compiler.codegen.inlining.hoisting import evaluated_first
from opchain.runtime.task.generated_code import code_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from opchain.compiler.codegen.inlining.scope import Scope


def body_of(
    definition: Definition,
    call: ast.Call,
    operator: int,
    scope: Scope,
    *,
    is_iterated: bool = False,
) -> f.Lines:
    """The statements of a function over the arguments of a call. `is_iterated` says that its result is used up."""
    callee = callee_of(call, scope.form)
    body = f.changed(f.copied(definition.body), _without_annotation)
    lambdas = _Lambdas(scope, definition, callee)
    body = [lambdas.visit(statement) for statement in body]
    check_body(body, definition, is_iterated=is_iterated)
    of_comprehensions, stores = comprehended(body), f.stores(body)
    local = {*definition.function.__code__.co_varnames, *stores}
    inner = {name for name, times in of_comprehensions.items() if stores.get(name) == times}
    check_set_before_read(body, set(definition.parameters), local - inner, definition)
    body = f.changed(body, _without_deletions)
    constants = Attributes(scope, definition, callee)
    body = [constants.visit(statement) for statement in body]
    arguments = _arguments(definition, callee, call, body)
    set_in_body = f.stores(body)
    code = definition.function.__code__
    others = {*definition.parameters, *code.co_names, *code.co_freevars}
    if of_comprehensions.keys() & others:
        raise Refused(f"{definition.name} uses one name for two variables; rename one")
    parts: dict[str, ast.expr] = {}
    before: f.Lines = []
    for parameter, argument in arguments.items():
        is_short = isinstance(argument, ast.Name) or is_literal(argument)
        if parameter not in set_in_body and (
            is_short or (f.reads(body, parameter) <= 1 and _is_pure_choice(argument))
        ):
            parts[parameter] = argument
            continue
        variable = scope.fresh(parameter, operator)
        before.append(f.let(variable, argument, operator))
        parts[parameter] = f.name(variable)
    for variable in sorted(local - set(parts)):
        if variable in set_in_body:
            parts[variable] = f.name(scope.fresh(variable, operator))
    bind_free_names(scope, body, definition, callee, parts)
    body = [f.replaced(statement, parts) for statement in body]
    body = f.changed(body, _decided, inner_first=True)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and isinstance(
                node, (ast.BinOp, ast.Call, ast.BoolOp, ast.JoinedStr, ast.Tuple)
            ):
                check_line(node, definition)
                break
    return [*before, *body]


def folded(
    lets: f.Lines, value: ast.expr, bound: Collection[str], is_fixed: Callable[[ast.expr], bool]
) -> ast.expr | None:
    """An expression with the arguments of a call in place of their variables. `bound` has the names of objects.

    `is_fixed` says whether a method is the same after other functions have run.

    None if an argument is not read exactly once, or not in the order in which the call evaluates the arguments, or if
    something that can fail or act, or that an argument may change, is evaluated between them.
    """
    arguments = dict(f.assignments(lets))
    order = _Order(dict(arguments), bound, is_fixed)
    is_once = all(f.reads(value, variable) == 1 for variable in arguments)
    if not is_once or not order.reaches(value) or order.pending:
        return None
    return f.replaced(value, arguments)


@dataclass(frozen=True, slots=True)
class _Order:
    """The arguments that an expression has not read yet, by their variables."""

    pending: dict[str, ast.expr]
    bound: Collection[str]
    is_fixed: Callable[[ast.expr], bool]

    def reaches(self, node: ast.expr) -> bool:
        """Takes the variables that an expression reads first. False if it does anything else before them."""
        parts: list[ast.expr]
        is_display = False
        match node:
            case ast.Name(id=name) if name in self.pending:
                is_next = next(iter(self.pending)) == name
                del self.pending[name]
                return is_next
            case ast.Name() | ast.Constant():
                return True
            case ast.Attribute() if self._is_of_object(node):
                return not self._may_be_set()
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                parts, is_display = [*elements], True
            case ast.Call(func=called, args=arguments, keywords=keywords):
                owner = called.value if isinstance(called, ast.Attribute) else called
                if self._is_bound(owner) and not self.is_fixed(called) and self._may_be_set():
                    return False
                is_method = self._is_bound(owner) or self._is_of_object(owner)
                parts = [owner if is_method else called, *arguments]
                parts += [each.value for each in keywords]
            case _:
                parts = [inner[where] for inner, where in evaluated_first(node)]
        return all(map(self.reaches, parts)) and (is_display or not self.pending)

    def _may_be_set(self) -> bool:
        """Whether an argument may set attributes."""
        return not all(map(only_calls_builtins, self.pending.values()))

    def _is_of_object(self, node: ast.expr) -> bool:
        """Whether an expression is an attribute of such an object, which certainly exists."""
        return isinstance(node, ast.Attribute) and self._is_bound(node.value)

    def _is_bound(self, node: ast.expr) -> bool:
        """Whether an expression is a function object, a module or a class."""
        return isinstance(node, ast.Name) and node.id in self.bound


def callee_of(call: ast.Call, form: f.Form) -> f.Callee:
    """The function that a call of generated code calls."""
    assert isinstance(call.func, ast.Name)
    return form.callees[call.func.id]


def _arguments(
    definition: Definition, callee: f.Callee, call: ast.Call, body: f.Lines
) -> dict[str, ast.expr]:
    """The arguments by parameter, in the order in which they are evaluated."""
    arguments = list(call.args)
    keywords = {item.arg: item.value for item in call.keywords}
    if any(isinstance(node, ast.NamedExpr) for node in f.nodes([*arguments, *keywords.values()])):
        raise Refused(
            f"{definition.name} is called with an assignment in an argument; assign before the call"
        )
    if None in keywords or any(isinstance(argument, ast.Starred) for argument in arguments):
        raise Refused(f"{definition.name} is called with starred arguments; pass them one by one")
    if callee.instance is not None:
        if callee.owner is None:
            own = definition.parameters[0]
            if any(f.reads(statement, own) for statement in body):
                raise Refused(f"{definition.name} reads self; pass the attribute as an argument")
            arguments.insert(0, ast.Constant(None))
        else:
            arguments.insert(0, f.name(callee.owner))
    parameters = definition.parameters
    given: dict[str, ast.expr] = {
        **dict(zip(definition.positional, arguments, strict=False)),
        **{str(name): value for name, value in keywords.items()},
    }
    found = given | {name: of for name, of in definition.defaults.items() if name not in given}
    by_position = {
        *parameters[: max(len(arguments), definition.function.__code__.co_posonlyargcount)]
    }
    if (
        len(arguments) > len(definition.positional)
        or keywords.keys() & by_position
        or found.keys() != {*parameters}
    ):
        raise Refused(
            f"{definition.name} is called with a wrong number of arguments; pass as many as it takes"
        )
    return found


def _is_pure_choice(node: ast.expr) -> bool:
    """Whether an argument only reads variables, so that it may be computed later or not at all."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.IfExp(
            test=ast.Compare(ops=[ast.Is() | ast.IsNot()], left=left, comparators=[right])
        ):
            return all(map(_is_pure_choice, (left, right, node.body, node.orelse)))
    return False


class _Lambdas(ast.NodeTransformer):
    """Replaces lambdas that read no local variable of the function, such as `key=lambda pair: pair[1]`, by names.

    Such a lambda can be created once, instead of in each call of the function.
    """

    def __init__(self, scope: Scope, definition: Definition, callee: f.Callee) -> None:
        self._scope = scope
        self._callee = callee
        code = definition.function.__code__
        self._file = code.co_filename
        self._places = {
            code_key(constant): place
            for place, constant in enumerate(code.co_consts)
            if isinstance(constant, CodeType)
            and constant.co_name == "<lambda>"
            and not constant.co_freevars
        }

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        if not self._places or node.args.defaults or any(node.args.kw_defaults):
            return node
        compiled = compile(ast.Expression(node), self._file, "eval", dont_inherit=True)
        place = self._places.get(code_key(compiled.co_consts[0]))
        return node if place is None else f.name(self._scope.inner_function(place, self._callee))


def _without_annotation(node: ast.AST) -> ast.stmt | None:
    """A variable without its annotation. Python does not evaluate it, so a pickled function lacks its names."""
    if not isinstance(node, ast.AnnAssign):
        return None
    made = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
    return ast.copy_location(made, node)


def _without_deletions(node: ast.AST) -> ast.stmt | None:
    """A statement without `del` of variables, which no later code reads."""
    if not isinstance(node, ast.Delete):
        return None
    node.targets = [item for item in node.targets if not isinstance(item, ast.Name)]
    return node if node.targets else ast.copy_location(ast.Pass(), node)


def _decided(node: ast.AST) -> ast.AST | f.Lines | None:
    """The result of a condition over constants, such as `1 is None`, or the branch that it chooses."""
    match node:
        case ast.Compare(
            left=ast.Constant(value=one),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Constant(value=other)],
        ):
            is_single = any(value is each for value in (one, other) for each in (None, True, False))
            return ast.Constant((one is other) == isinstance(op, ast.Is)) if is_single else None
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=value)):
            return ast.Constant(not value)
        case ast.IfExp(test=ast.Constant(value=value)):
            return node.body if value else node.orelse
        case ast.If(test=ast.Constant(value=value)):
            return (node.body if value else node.orelse) or [ast.Pass()]
    return None
