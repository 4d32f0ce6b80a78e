"""Static types of expressions and records. Generated code need not check a type that is known.

Only exact builtin types are known: `int` means instances of int itself, not of a subclass. Types are inferred from the
built-in sources, through inlined expressions, and across exchanges, which keep types. None means an unknown type.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from opchain.compiler.codegen.displays import MAKERS
from opchain.compiler.codegen.internal_functions import Trait, has
from opchain.runtime.connectors.collection import CollectionSource, NumberSequenceSource
from opchain.runtime.connectors.dataframe_source import DataFrameSource
from opchain.runtime.connectors.file_source import FileSource, TextLineSource
from opchain.runtime.connectors.kafka.source import KafkaSource
from opchain.runtime.connectors.watched_files import WatchedFileSource
from opchain.runtime.formats.text_lines import TextLineFormat
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.records.columns import Columns, Shape, shape_of
from opchain.runtime.records.record_copy import IMMUTABLE
from opchain.runtime.types.row import Row
from opchain.runtime.types.serialization import SimpleStringSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.program.operator_specs import OperatorSpec


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple of this length. None for an item of unknown type."""

    items: tuple[StaticType | None, ...]


@dataclass(frozen=True, slots=True)
class IterableOf:
    """An iterable whose items all have the same type. A generator has no length, and no item at a position."""

    item: StaticType
    is_generator: bool = False


@dataclass(frozen=True, slots=True)
class ResultOf:
    """A function of the `re` module, by name."""

    function: str

    def type(self, arguments: list[ast.expr], names: Names) -> StaticType | None:
        """The type of its result for a constant pattern and strings."""
        pattern = getattr(arguments[0], "value", None) if arguments else None
        given, most_groups, result = _OF_PATTERNS[self.function]
        if len(arguments) != given or any(type_of(item, names) is not str for item in arguments):
            return None
        try:
            groups = re.compile(pattern).groups if isinstance(pattern, str) else None
        except re.error:
            return None
        return result if groups is not None and groups <= most_groups else None


@dataclass(frozen=True, slots=True)
class ColumnsOf:
    """Records that are sent field by field. `constants` has a text for each field that is the same in all records.

    The records are tuples, or have another shape. The text of a field that is left out is "...".
    """

    record: TupleOf
    constants: tuple[str | None, ...]
    shape: Shape | None = None

    @property
    def lacks_fields(self) -> bool:
        """Whether fields are left out."""
        return "..." in self.constants

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a tuple at the reader, as expressions."""
        return tuple(
            f"field_{position}" if text is None else text
            for position, text in enumerate(self.constants)
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """The fields that are sent."""
        pairs = zip(self.fields, self.constants, strict=True)
        return tuple(field for field, text in pairs if text is None)


@dataclass(frozen=True, slots=True)
class CombinedOf:
    """(key, record) pairs of a sender that combines, as columns of the keys, of type `key`, and of the other fields.

    `key_field` is the field of the record that is the key; None if none is.
    """

    record: ColumnsOf
    key: StaticType | None
    key_field: int | None

    @property
    def variables(self) -> tuple[str, ...]:
        """The key, and the other fields that are sent."""
        own = "field_key" if self.key_field is None else f"field_{self.key_field}"
        return own, *(field for field in self.record.variables if field != own)


@dataclass(frozen=True, slots=True)
class JsonOf:
    """Dicts that are sent as the JSON texts from which they were parsed. Some batches have the dicts themselves."""


@dataclass(frozen=True, slots=True)
class SentRecords:
    """The known properties of the records of an edge.

    Unless it `is_certain`, a batch may also be a list of records of unknown types instead of `Columns`. If it
    `is_typed`, these records have the same types as those in `Columns`. `key_list` is the number of the list of
    `Columns` with the keys.
    """

    type: StaticType | None = None
    is_certain: bool = True
    is_typed: bool = False
    key_list: int | None = None


StaticType: TypeAlias = "type | TupleOf | IterableOf | ResultOf | ColumnsOf | CombinedOf | JsonOf"
Names: TypeAlias = "Mapping[str, StaticType | None]"
Types: TypeAlias = "dict[str, StaticType | None]"
"""The types of variables."""

_RECORDS: dict[type, type] = {
    NumberSequenceSource: int,
    TextLineSource: str,
    TextLineFormat: str,
    SimpleStringSchema: str,
}

_TEXT_METHODS: dict[str, StaticType] = {
    **dict.fromkeys(("capitalize", "casefold", "expandtabs", "lower", "lstrip"), str),
    **dict.fromkeys(("removeprefix", "removesuffix", "replace", "rstrip", "strip"), str),
    **dict.fromkeys(("swapcase", "title", "upper", "zfill"), str),
    **dict.fromkeys(("split", "rsplit", "splitlines"), IterableOf(str)),
}
"""Result types of methods of str."""

_NEVER_RAISE = frozenset(
    {
        *("capitalize", "casefold", "lower", "lstrip", "rsplit", "rstrip", "split"),
        *("splitlines", "strip", "swapcase", "title", "upper"),
    }
)
"""Methods of str that never raise without arguments."""

_OF_PATTERNS: dict[str, tuple[int, int, StaticType]] = {
    "findall": (2, 1, IterableOf(str)),
    "split": (2, 0, IterableOf(str)),
    "sub": (3, 100, str),
}
"""For functions of `re`: the number of arguments, the maximum number of groups in the pattern, and the result type."""

_KEEPS_NUMBERS = (ast.Add, ast.Sub, ast.Mult)
_KEEPS_INTS = (*_KEEPS_NUMBERS, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_ALWAYS_BOOL = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_COMPARABLE = (int, float, str, bool)


def records_of(spec: OperatorSpec) -> SentRecords:
    """What is known of a source's records: nothing for a subclass of a built-in source."""
    source: Any = getattr(spec, "source", None)
    if isinstance(spec, specs.InputFormatSourceSpec):
        source = spec.function
    if type(source) is CollectionSource and isinstance(source.records, Columns):
        return SentRecords(_type_of_columns(source.records))
    reader = _reader_of(source)
    is_dataframe = type(source) is DataFrameSource
    if is_dataframe or reader is not source:
        names = getattr(reader, "row_names", ())
        if names:
            return SentRecords(_rows_with(names), is_certain=is_dataframe)
    return SentRecords(_RECORDS.get(type(reader)))


def _reader_of(source: Any) -> Any:
    """The format or the schema that creates a source's records; the source itself, if it has none."""
    if type(source) is WatchedFileSource:
        source = source.files
    if type(source) is FileSource:
        return source.file_format
    return source.deserializer.schema if type(source) is KafkaSource else source


def _rows_with(names: Sequence[str]) -> ColumnsOf:
    """Rows with these fields of unknown types: any value may be None."""
    count = len(names)
    return ColumnsOf(TupleOf((None,) * count), (None,) * count, Shape(Row, tuple(names)))


def _type_of_columns(columns: Columns) -> ColumnsOf:
    """The type of Rows that are known when the program is compiled."""
    kinds = (common([*map(type, column)]) for column in columns.lists)
    record = TupleOf(tuple(kind if kind in IMMUTABLE else None for kind in kinds))
    return ColumnsOf(record, (None,) * len(columns.lists), shape_of(columns.layout))


def type_of_constant(value: Any) -> StaticType | None:
    """The type of a global constant."""
    if type(value) in (int, float, str, bool):
        return type(value)
    return next((ResultOf(name) for name in _OF_PATTERNS if getattr(re, name) is value), None)


def is_frozen(known: StaticType | None) -> bool:
    """Whether values of the type are immutable."""
    if isinstance(known, TupleOf):
        return all(map(is_frozen, known.items))
    return known in IMMUTABLE


def type_of(  # noqa: C901, PLR0911, PLR0912 - one branch for each kind of expression
    node: ast.expr, names: Names
) -> StaticType | None:
    """The type of an expression's value, if it does not raise. `names` are the types of its variables."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Constant(value=value):
            return type(value) if type(value) in IMMUTABLE else None
        case ast.Tuple(elts=items):
            return TupleOf(tuple(_within(type_of(item, names)) for item in items))
        case ast.List(elts=items):
            kind = _within(common([type_of(item, names) for item in items]))
            return None if kind is None else IterableOf(kind)
        case ast.Subscript():
            return _of_item(node, names)
        case ast.Call():
            return _of_call(node, names)
        case ast.BinOp():
            return _of_operation(node, names)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if all(isinstance(op, _ALWAYS_BOOL) for op in ops):
                return bool
            return (
                bool
                if all(type_of(side, names) in _COMPARABLE for side in (left, *others))
                else None
            )
        case ast.UnaryOp(op=op, operand=operand):
            kind = type_of(operand, names)
            is_number = kind in (int, float) and not isinstance(op, ast.Invert)
            return bool if isinstance(op, ast.Not) else kind if is_number else None
        case ast.IfExp(body=one, orelse=other):
            return common([type_of(one, names), type_of(other, names)])
        case ast.BoolOp(values=items):
            return common([type_of(item, names) for item in items])
        case ast.JoinedStr(values=items):
            # For a single part, the result is that of `__format__`, which may be of a subclass.
            return str if len(items) > 1 else None
        case ast.ListComp() | ast.GeneratorExp():
            return _of_comprehension(node, names)
    return None


def plain_type(known: StaticType | None) -> Any:
    """The known type of a value, in the form for `coders.form_test`."""
    if isinstance(known, TupleOf):
        return tuple(map(plain_type, known.items))
    return known if isinstance(known, type) else None


def item_type(iterable: StaticType | None) -> StaticType | None:
    """The type of the items when a loop iterates over a value."""
    if isinstance(iterable, IterableOf):
        return iterable.item
    if isinstance(iterable, TupleOf):
        return common(list(iterable.items))
    return str if iterable is str else None


def never_raises(node: ast.expr, names: Names) -> bool:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    """Whether an expression never raises, because its operands have known types. Its variables are set."""

    def all_quiet(items: Iterable[ast.expr]) -> bool:
        return all(never_raises(item, names) for item in items)

    def is_known(item: ast.expr) -> bool:
        return type_of(item, names) is not None

    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all_quiet(items)
        case ast.Dict(keys=keys, values=items):
            return all(isinstance(key, ast.Constant) for key in keys) and all_quiet(items)
        case ast.BoolOp(values=items):
            return all_quiet(items) and all(map(is_known, items[:-1]))
        case ast.IfExp(test=test, body=one, orelse=other):
            return is_known(test) and all_quiet((test, one, other))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return is_known(operand) and never_raises(operand, names)
        case ast.Compare(left=left, comparators=others):
            kinds = {type_of(side, names) for side in (left, *others)}
            is_alike = len(kinds) == 1 and kinds <= {*_COMPARABLE}
            is_identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
            return (is_alike or is_identity) and all_quiet((left, *others))
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as place)):
            kind = names.get(name)
            return isinstance(kind, TupleOf) and 0 <= place < len(kind.items)
        case ast.BinOp(left=left, op=op, right=right):
            kind = type_of(left, names)
            if isinstance(op, (ast.Mod, ast.FloorDiv)):
                by = right.value if isinstance(right, ast.Constant) else 0
                return kind is int and type(by) is int and by != 0 and never_raises(left, names)
            if not isinstance(op, _KEEPS_NUMBERS) or kind is not type_of(right, names):
                return False
            is_text = kind is str and isinstance(op, ast.Add)
            return (kind in (int, float) or is_text) and all_quiet((left, right))
        case ast.Call(func=called, args=given, keywords=keywords):
            given = [*given, *(keyword.value for keyword in keywords)]
            kinds_given = [type_of(item, names) for item in given]
            if not all_quiet(given):
                return False
            if isinstance(called, ast.Attribute):
                by = getattr(given[0], "value", None) if len(given) == 1 else None
                is_split = called.attr in ("split", "rsplit") and isinstance(by, str) and by != ""
                is_text = type_of(called.value, names) is str and never_raises(called.value, names)
                return is_text and (is_split or (called.attr in _NEVER_RAISE and not given))
            match called, kinds_given:
                case ast.Name(id="len"), [kind]:
                    has_items = isinstance(kind, IterableOf) and not kind.is_generator
                    return kind is str or has_items or isinstance(kind, TupleOf)
                case ast.Name(id="range"), [_] | [_, _]:
                    return {*kinds_given} == {int}
                case ast.Name(id=name), _:
                    return name in MAKERS or (name in _EXTREMES and is_known(node))
    return False


def common(found: list[StaticType | None]) -> StaticType | None:
    """The type of all values, if it is the same."""
    return found[0] if found and all(item == found[0] for item in found) else None


def _within(kind: StaticType | None) -> StaticType | None:
    """The type of a value in a container. A list may change through the container, which nobody looks for."""
    return None if isinstance(kind, IterableOf) else kind


def _of_comprehension(node: ast.ListComp | ast.GeneratorExp, names: Names) -> StaticType | None:
    known = dict(names)
    for part in node.generators:
        item = item_type(type_of(part.iter, known))
        for target in ast.walk(part.target):
            if isinstance(target, ast.Name):
                known[target.id] = item if target is part.target else None
    kind = _within(type_of(node.elt, known))
    is_generator = isinstance(node, ast.GeneratorExp)
    return None if kind is None else IterableOf(kind, is_generator)


def _of_operation(node: ast.BinOp, names: Names) -> StaticType | None:
    left, right = type_of(node.left, names), type_of(node.right, names)
    if left is right is int and isinstance(node.op, _KEEPS_INTS):
        return int
    if left in (int, float) and right in (int, float):
        return float if isinstance(node.op, (*_KEEPS_NUMBERS, ast.Div)) else None
    return str if left is right is str and isinstance(node.op, ast.Add) else None


def _of_item(node: ast.Subscript, names: Names) -> StaticType | None:
    container = type_of(node.value, names)
    if isinstance(container, TupleOf) and isinstance(node.slice, ast.Constant):
        place: Any = node.slice.value
        if type(place) is int and 0 <= place < len(container.items):
            return container.items[place]
    if isinstance(container, IterableOf) and not container.is_generator:
        return container if isinstance(node.slice, ast.Slice) else container.item
    return str if container is str else None


def _of_call(node: ast.Call, names: Names) -> StaticType | None:
    called = node.func
    if node.keywords or not isinstance(called, (ast.Attribute, ast.Name)):
        return None
    if isinstance(called, ast.Attribute):
        return _TEXT_METHODS.get(called.attr) if type_of(called.value, names) is str else None
    if has(called.id, Trait.GIVES_TEXT):
        return str
    if called.id in _OF_ARGUMENTS:
        given = common([type_of(item, names) for item in node.args])
        return _OF_ARGUMENTS[called.id].get((len(node.args), given))
    known = names.get(called.id)
    return known.type(node.args, names) if isinstance(known, ResultOf) else _BUILTINS.get(called.id)


_BUILTINS: dict[str, StaticType] = {
    **dict.fromkeys(("int", "len", "ord"), int),
    "bool": bool,
    "chr": str,
    "float": float,
    "range": IterableOf(int),
}
"""Result types of calls of builtins. The inliner refuses a name that is redefined."""

_EXTREMES = ("max", "min")
_OF_EXTREMES: dict[tuple[int, StaticType | None], StaticType] = {
    (count, kind): kind for count in (2, 3) for kind in (int, float, str)
}
_OF_ARGUMENTS: dict[str, dict[tuple[int, StaticType | None], StaticType]] = {
    "abs": {(1, int): int, (1, float): float},
    **dict.fromkeys(_EXTREMES, _OF_EXTREMES),
    "round": {(1, int): int, (1, float): int},
    "str": {(1, int): str, (1, float): str, (1, str): str},
}
"""Result types of calls, by the number of arguments, which all have this type."""
