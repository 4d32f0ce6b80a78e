"""The names in a generated function that bodies are inlined into."""

from __future__ import annotations

from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import is_of_library
from opchain.compiler.codegen.displays import class_name
from opchain.compiler.codegen.function_source import Refused, is_written_exactly, literal
from opchain.compiler.codegen.names import readable, unused
from opchain.runtime.task.generated_code import ABSENT, digest_of
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator


WRITTEN = (int, float, bool, type(None))
"""The classes of constants that replace global names and attributes."""


class Scope:
    """The names of the variables of inlined bodies, and of the objects that the bodies refer to.

    Attributes:
        can_watch: Whether the function checks once per batch that global names and attributes are unchanged.
        watched: These names and attributes (see `Watched`).
    """

    def __init__(self, form: f.Form, function: f.Function) -> None:
        self.form = form
        self.function = function
        self.can_watch = function.is_batch and function.kind in ("process", "fire", "batch")
        self.watched: list[tuple[Any, ...]] = []
        self._used = f.names_in(function.body)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Within it, a refusal takes back the names that were given and watched."""
        watched, used = len(self.watched), set(self._used)
        try:
            yield
        except Refused:
            del self.watched[watched:]
            self._used = used
            raise

    def fresh(self, base: str, operator: int) -> str:
        """A name for a variable of a body that no other variable has."""
        where = f.suffix_of(operator)
        base = readable(_Named(base), "local")
        name = f"{base}_{where}"
        while name in self._used or name in self.form.names.bindings:
            base += "_too"
            name = f"{base}_{where}"
        self._used.add(name)
        return name

    def others(self, block: f.Lines) -> dict[str, ast.expr]:
        """The variables of another copy of a block, by the variables that it sets for a record."""
        return {name: self._another(name) for name in self.function.variables_of_a_record(block)}

    def _another(self, variable: str) -> ast.expr:
        variable = unused(variable, self._used, self.form.names.bindings)
        self._used.add(variable)
        return f.name(variable)

    def watch(
        self,
        path: tuple[Any, ...],
        names: Any,
        value: Any,
        *,
        is_attribute: bool = False,
        is_sent: bool = False,
    ) -> None:
        """Has names watched (see `Watched`). ABSENT stands for any value. A value that `is_sent` is the same on executors."""
        if not self.can_watch:
            raise Refused(
                "it reads global names, and is not called once per batch; keep them in attributes"
            )
        digest = None if value is ABSENT else digest_of(value)
        self.watched.append((path, names, digest, is_attribute))
        has_value = is_written_exactly(value) or getattr(value, "__defaults__", None)
        self.form.assumes_values |= bool(has_value) and not is_sent

    def value(self, name: str, callee: f.Callee, value: Any, *, is_compared: bool) -> ast.expr:
        """The expression for a global name: a number itself, which is watched, unless its identity `is_compared`."""
        if type(value) in WRITTEN and is_written_exactly(value) and not is_compared:
            self.watch(callee.path, (name,), value)
            return literal(value)
        return f.name(self.global_name(callee, (name,), value))

    def global_name(self, callee: f.Callee, names: tuple[str, ...], value: Any) -> str:
        """The name of generated code for a global name of a function, which must not change."""
        name = self.constant("_".join(names), callee, value, "global", callee.path, names)
        if isinstance(value, staticmethod):
            value = value.__func__
        is_known = isinstance(value, (FunctionType, OutputTag)) or is_written_exactly(value)
        self.watch(callee.path, names, value if is_known else ABSENT)
        self._may_be_inlined(name, value)
        return name

    def free_name(self, callee: f.Callee, name: str, value: Any) -> str:
        """The name of generated code for a variable of the enclosing function, which no code sets again."""
        found = self.constant(name, callee, value, "free", callee.path, name)
        self._may_be_inlined(found, value)
        return found

    def _may_be_inlined(self, name: str, value: Any) -> None:
        if isinstance(value, FunctionType) and not is_of_library(value):
            path = self.form.names.bindings[name]
            self.form.callees.setdefault(name, f.Callee(value, path))

    def method(
        self, callee: f.Callee, attribute: str, method: FunctionType | staticmethod[..., Any]
    ) -> str:
        """The name of generated code for a method of the object that a body belongs to."""
        assert callee.owner is not None
        owner_path = self.form.names.bindings[callee.owner]
        where = callee.owner.rpartition("_")[2]
        name = self._bound(method, where, "attribute_of", owner_path, attribute)
        path = self.form.names.bindings[name]
        self.form.callees[name] = (
            f.Callee(method.__func__, path)
            if isinstance(method, staticmethod)
            else f.Callee(method, path, callee.owner, callee.instance)
        )
        self.watch(owner_path, attribute, ABSENT, is_attribute=True)
        return name

    def class_method(self, callee: f.Callee, names: tuple[str, str], kind: Any) -> str:
        """The name of generated code for a method of a class, which is the object of the call."""
        owner, method = self.global_name(callee, names[:1], kind), vars(kind)[names[1]]
        where = owner.rpartition("_")[2]
        path = self.form.names.bindings[owner]
        name = self._bound(_Named("_".join(names)), where, "attribute_of", path, names[1])
        self.watch(callee.path, names, method)
        path = self.form.names.bindings[name]
        self.form.callees.setdefault(name, f.Callee(method.__func__, path, owner, kind))
        return name

    def method_of_record(self, kind: type, attribute: str, function: FunctionType) -> str:
        """The name of generated code for the function of a method or property."""
        owner = class_name(kind, self.form)
        path = self.form.names.bindings[owner]
        self.watch(path, attribute, function, is_attribute=True)
        member = attribute if function is vars(kind)[attribute] else f"{attribute}.fget"
        named = _Named(f"{kind.__name__}_{attribute}")
        name = self._bound(named, owner.rpartition("_")[2], "attribute_of", path, member)
        self.form.callees.setdefault(name, f.Callee(function, self.form.names.bindings[name]))
        return name

    def inner_function(self, place: int, callee: f.Callee) -> str:
        """The name of generated code for a lambda that a function defines, by the place among its constants."""
        return self._bound(_Named("inner"), _where(callee), "inner", callee.path, place)

    def constant(self, name: str, callee: f.Callee, value: Any, *what: Any) -> str:
        """The name of generated code for an object that a name or an attribute of a function refers to."""
        name = self._bound(_Named(name), _where(callee), *what)
        self.form.constants[name] = value
        return name

    def _bound(self, named: Any, where: str, *what: Any) -> str:
        """Binds a name that no local variable has."""
        names = self.form.names
        return names.bind_like(names.function(named, "global", where), *what, taken=self._used)


def _where(callee: f.Callee) -> str:
    """The number of the operator whose function it is."""
    return str(callee.path[1] if isinstance(callee.path[1], int) else 0)


class _Named:
    """Something with a name, for `readable`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
