"""Random programs as source text: functions as users could write them, for the code generator to inline.

`random_program` gives a module with `draw(env)` and the names of its `seen` streams. Expressions and statements are
filled templates: `{int}` stands for any expression of that kind, `{block}` for statements.
"""

from __future__ import annotations

import random
import re
from inspect import cleandoc
from textwrap import indent
from typing import Any

HEAD = """
import collections, contextlib, functools, itertools, json, operator, re
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from forms import seen
from opchain.common import Row, Time, TimestampAssigner, Types, WatermarkStrategy
from opchain.datastream import AsyncDataStream, OutputTag
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import *
from opchain.datastream.state import *
from opchain.datastream.window import *

class Named(NamedTuple):
    k: int
    n: int
    s: str

@dataclass
class Data:
    k: int
    n: int
    s: str
    def both(self):
        return self.k + self.n
    @property
    def label(self):
        return f"{self.k}/{self.s}"
    def bump(self, by=1):
        self.n += by
        return self

class Wide(NamedTuple):
    k: int
    n: int
    s: str
    items: list
    m: int

@dataclass
class Broad:
    k: int
    n: int
    s: str
    items: list
    m: int

@dataclass(frozen=True)
class Frozen:
    k: int
    n: int = 3
    @classmethod
    def of(cls, x):
        return cls(x % 5, x)

class Color(Enum):
    RED = 0
    BLUE = 1

class Node:
    def __init__(self, n):
        self.n, self.items = n, [n]
    def add(self, x):
        self.items.append(x)
        self.n = max(self.n, x)
        return len(self.items)
    def __len__(self):
        return len(self.items)
    def __repr__(self):
        return f"Node({self.n}, {self.items})"

class Refused(Exception):
    def __init__(self, value):
        super().__init__(f"refused {value}")
        self.value = value

@contextlib.contextmanager
def opened(x):
    try:
        yield x
    except KeyError:
        pass

SIDE = OutputTag("side")
SIDES = [SIDE]
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())
NAMES = ["ab", "c", "def"]
TABLE = {0: "zero", 1: "one", 2: "two"}

def less(a, b=3):
    if a > b:
        return a - b
    return a + b

def guarded(a):
    try:
        return 100 // (a % 7)
    except ZeroDivisionError:
        return -1

def second(_a, b):
    return b

def within(x, *, low=2):
    if x < low:
        return low
    return x

def grown(items):
    items.append(len(items))
    return len(items)

def middle(x):
    if x > 3:
        y = x % 5
        if y == 1:
            return -y
        x += y
    elif x < 0:
        x = -x
    return x + 2

def strict(x):
    if x % 97 == 13:
        raise Refused(x)
    return x

def scaled(x, n=-2):
    return x + n ** 2

def paired(x):
    try:
        return [x] * (x % 4)
    except ValueError:
        return 7, 8

def first_of(items):
    for item in items:
        return item
    return 0

def doubled(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args) * 2
    return call

def same_function(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

@doubled
def decorated(a):
    return a + 1

@functools.lru_cache
def cached(a):
    return a * 2

class Adder:
    by = 3
    def __call__(self, a):
        return a + self.by
    @staticmethod
    def twice(a):
        return a * 2
    @classmethod
    def of_class(cls, a):
        return a - cls.by

ADD = Adder()
adding = functools.partial(less, b=2)

def upto(n):
    for x in range(n % 5):
        yield x

def fact(n):
    return 1 if n <= 1 else n % 7 + fact(n - 1)

class Times(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return (value["n"] if isinstance(value, dict) else value) * 3 % 50

MORE = ["", ', "more": [1.5, null]', ', "more": NaN', ', "n": 3']  # the fast decoder leaves some to json.loads

def documents(env):
    path = Path(__file__).with_suffix(".jsonl")
    lines = [f'{{"k": {x % 5}, "s": "é{x}", "n": {x}{MORE[x // 7 % 4]}}}' for x in range(40)]
    path.write_text("\\n".join(lines), encoding="utf-8")
    text = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    return env.from_source(text, WatermarkStrategy.no_watermarks(), "lines").map(json.loads)
"""

RECORDS = (
    "int",
    "str",
    "pair",
    "triple",
    "list",
    "dict",
    "row",
    "named",
    "data",
    "frozen",
    "maybe",
    "float",
    "nested",
    "node",
)
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    kind: tuple(re.split(r";\s+", templates.strip()))
    for kind, templates in {
        "int": """
            2; -1; 7; {int} + {int}; {int} - {int}; {int} * {int} % 1009; {int} % 7; {int} // 3;
            len({str}); len({list}); {int} if {bool} else {int}; abs({int}); min({int}, {int});
            less({int}); less({int}, b={int}); guarded({int}); second({int}, {int}); scaled({int});
            second(10 // {int}, {int}); second({bool}, {int}); sum({list}); first_of({list});
            len([x for x in {list} if x % 2]); {pair}[0]; {pair}[-1]; {triple}[2]; {row}.k;
            {row}['n']; {row}[0]; {named}.n; {named}[0]; {data}.n; {data}.both(); {frozen}.k;
            {dict}['k']; {dict}.get('missing', 4); {maybe} or 0; ord({str}[0]); 10 // {int};
            {list}[0]; int({bool}); json.loads('[3]')[0]; sum(x for x in {list});
            len({{x for x in {list}}}); (lambda x: x + {int})({int}); less(*{pair});
            less(**{{'a': {int}}}); {named}._asdict()['k']; getattr({data}, 'k');
            functools.reduce(lambda x, y: x + y, {list}, 0); divmod({int}, 7)[1]; {int} & 5;
            round({int} / 3); -{int}; sum(x for x, _ in enumerate({list})); len({dict}.items());
            max([{int}, {int}], key=lambda x: -x); dict(zip({list}, {list})).get(1, {int});
            int(Decimal({int}) * 2); Color({int} % 2).value; len(re.findall('[0-9]', {str}));
            datetime.fromtimestamp({int} % 9999, timezone.utc).minute; int('0' + str({int} & 5));
            sum(1 for x in {list} if x in {{1, 2}}); [{int}, 3].index(3);
            decorated({int}); cached({int}); ADD({int}); Adder.twice({int}); ADD.of_class({int});
            within({int}); within({int}, low={int}); strict({int}); grown({list}); middle({int});
            adding({int}); sum(upto({int})); fact({int} % 6); next(iter({list}), {int}); len({data}.s);
            {data}.bump({int}).n; len(Node({int})); Node({int}).add({int}); {node}.n; len({node});
            collections.Counter({list}).get(1, 0); max({list}, default={int}); {int} ** 2 % 50;
            sum({{x: {int} for x in {list}}}.values()); [x for x in {list}].count(2); ~{int};
            int({int} == {int}); len({triple}); hash({pair}) % 10; pow({int}, 2, 7);
            int(isinstance({maybe}, int)); len({{*{list}}}); [*upto({int}), 5][0]; {int} ^ 3; {int} << 1;
            int(round({float})); int({float} // 2); len(b'ab' + str({int}).encode()); {str}.count('a');
            sorted({list}, key=lambda x: -x)[0]; next((x for x in {list} if x > 2), 0); {str}.find('a');
            min({pair}, {pair})[0]; {nested}[0][1]; {nested}[1]; len({nested}[2]); (({int}), 4)[{int} % 2]
        """,
        "str": """
            'a'; ''; str({int}); {str} + {str}; {str}.upper(); {str}[:2]; {str}[::-1];
            f"{{{int_}}}-x"; '%s:%s' % ({int}, {str}); ','.join([str(x) for x in {list}]);
            TABLE.get({int} % 4, 'many'); {str} if {bool} else {str}; {triple}[1]; {named}.s;
            {data}.s; {data}.label; {dict}['s']; {str}[:3] * ({int} % 3); NAMES[0];
            '-'.join(map(str, {list})); ' '.join(sorted({str})); {str}.replace('a', {str}[:9]);
            json.dumps({{'n': {int}}}); json.dumps({dict})[:40]; json.loads(json.dumps({str}));
            re.sub('[a-c]+', '-', {str}); {str}.split('-')[0]; Color.RED.name;
            '{{:03d}}'.format({int}); {str} or 'none'; ', '.join(f'{{x}}' for x in {list});
            str({maybe}); repr({pair})[:30]; f"{{{int_}:>4}}|{{{str_}!r}}"[:30]; {str}.title(); {str}.strip('a-');
            ''.join(x for x, _ in itertools.groupby({str})); {str}.partition('-')[2]; f"{{{float}:.2f}}";
            'é' + {str}; {str} if {str} else {str}; ''.join(reversed({str})); str({nested})[:30]; '\\n'.join([{str}]);
            {str}.encode().hex()[:8]; str({float}); type({any_}).__name__; str(sorted({{{str}, {str}}}))
        """,
        "bool": """
            {int} > {int}; {int} == {int}; {int} % 2 == 0; not {bool}; {bool} and {bool};
            {bool} or {bool}; {int} in {list}; {str} in NAMES; {str} == {str}; bool({str});
            any(x > 2 for x in {list}); all([x < {int} for x in {list}]); {pair} < {pair};
            {maybe_} is None; 0 <= {int} < 17; {str}.startswith('1'); isinstance({any_}, (int, str));
            {int} != {int} != {int}; {float} > {int}; bool({list}) is True; {str} not in ('a', 'b');
            {maybe_} is not None and {maybe_} > 2; {str}.isdigit(); {nested} > {nested}; not {str}
        """,
        "float": """
            {int} / 4; {int} * 0.5; float({int}); round({float}, 1); {float} + {int}; 1e3; -{float};
            abs({float}); {float} % 3; sum([{float}, {float}]); max({float}, {int}); float('inf')
        """,
        "nested": """
            (({int}, {int}), {int}, [{int}]); ({pair}, {int}, {list})
        """,
        "node": """
            Node({int})
        """,
        "pair": """
            ({int}, {int})
        """,
        "triple": """
            ({int}, {str}, {int})
        """,
        "list": """
            []; [{int}, {int}]; [x % 3 for x in range({int} % 5)]; sorted({list});
            {list} + [{int}]; [*{list}, 7]; list(range({int} % 4)); {list}[1:];
            [x + y for x in {list}[:4] for y in {list}[:4]]; [*map(abs, {list})]
        """,
        "dict": """
            {{'k': {int}, 'n': {int}, 's': {str}}}; dict(k={int}, n={int}, s={str});
            {{**{dict}, 'n': {int}}}
        """,
        "row": """
            Row(k={int}, n={int})
        """,
        "named": """
            Named({int}, {int}, {str}); {named}._replace(n={int})
        """,
        "data": """
            Data({int}, {int}, {str}); Data(k={int}, s={str}, n={int}); replace({data}, n={int})
        """,
        "frozen": """
            Frozen({int}, {int}); Frozen.of({int}); Frozen({int})
        """,
        "maybe": """
            {int}; None; {int} if {bool} else None
        """,
    }.items()
}


def _statements(templates: str) -> tuple[str, ...]:
    """Templates of statements, a line each."""
    lines = cleandoc(templates).splitlines()
    return tuple(line.replace("\\n", "\n") for line in lines)


STATEMENTS = _statements(
    r"""
    {new} = {any}
    {new} = {any}
    {new} = {any}
    if {bool}:\n{block}
    {last} += {int}
    if {bool}:\n    {new} = {int}\nelse:\n{block}\n    {same} = {int}
    for x in {list}[:5]:\n{block}
    for at, x in enumerate({list}[:5]):\n    if {bool}:\n        continue\n{block}
    for x in range({int} % 4):\n{block}\n    if {bool}:\n        break\nelse:\n{block}
    left = {int} % 4\nwhile left > 0:\n    left -= 1\n{block}
    try:\n{block}\n    {new} = 10 // {int}\nexcept (ZeroDivisionError, LookupError):\n    {same} = {int}
    if ({new} := {int}) > 3:\n{block}
    {list_}.append({int})
    {dict_}['n'] += {int}
    {dict_}['more'] = {int}
    {data_}.n += {int}
    def inner(x):\n    return {int}\n{new} = inner({int})
    {new}, _ = {any}, {int}
    {new} = {last} = {int}
    {new}, {last} = {last}, {int}
    assert {int} != {str}
    {row_}['k'] = {int}
    {row_}.n = {int}
    {dict_}.update(n={int})
    {dict_}.setdefault('others', []).append({int})
    for x, y in zip({list}[:4], {list}):\n{block}
    for x in sorted(set({list})):\n{block}
    def inner(x, y=2):\n    if x > y:\n        return {int}\n    return y\n{new} = inner({int})
    _, {new} = {pair}
    first, *others = [{int}, *{list}]\n{new} = first + len(others)
    try:\n{block}\nfinally:\n    {new} = {int}
    try:\n    if {bool}:\n        raise KeyError({int})\n    {new} = {int}\nexcept KeyError as error:\n    {same} = error.args[0]
    with contextlib.nullcontext({int}) as {new}:\n{block}
    while True:\n{block}\n    {new} = {int}\n    break
    {list_}[:] = sorted({list_})
    match {int} % 4:\n    case 0:\n        {new} = 1\n    case 1 | 2:\n        {same} = {int}\n    case _:\n        {same} = 5
    {new}: int = {int}
    {new} = 0\nfor x in {list}:\n    {same} += x * {int}
    if not {list}:\n    {new} = {int}\nelif {bool}:\n{block}\n    {same} = {int}\nelse:\n    {same} = 3
    {new} = []\nfor x in {list}:\n    if {bool}:\n        {same}.append({int})\n{same} = len({same})
    {new} = {{}}\nfor x in {list}:\n    {same}[x % 3] = {same}.get(x % 3, 0) + 1\n{same} = len({same})
    {new} = 0\ndef bump(x):\n    nonlocal {same}\n    {same} += x\n    return {same}\nbump({int})\nbump(2)
    {data_}.bump({int})
    {node_}.add({int})
    {node_}.items.append({int})
    {node_}.n = {int}
    {new} = [(lambda x, by=at: x + by) for at in range(3)][1]({int})
    if {bool}:\n    raise Refused({int})
    try:\n    if {bool}:\n        raise Refused({int})\nexcept Refused as refused:\n    {new} = refused.value\nelse:\n    {same} = {int}
    try:\n    {new} = {int}\n    try:\n        {same} = 10 // {int}\n    finally:\n        {same} += 1\nexcept ZeroDivisionError:\n{block}\n    {same} = 3
    {new} = 0\nwith opened({int}) as x:\n    if {bool}:\n        raise KeyError(1)\n    {same} = x
    {new} = {int}\ndel {list_}[:1]
    {dict_}.pop('more', None)
    {dict_} |= {{'n': {int}}}
    {new} = {int}\nfor k, v in {dict}.items():\n    if k == 'n':\n        {same} += v
    {new} = 0\nfor x in upto({int}):\n    if x == 2:\n        break\n    {same} += x\nelse:\n    {same} = -1
    match {pair}:\n    case (0, x):\n        {new} = x\n    case (x, 1) if x > 2:\n        {same} = x\n    case _:\n        {same} = {int}
    match {dict}:\n    case {{'n': int(x)}}:\n        {new} = x\n    case _:\n        {same} = 0
    match {named}:\n    case Named(k=1):\n        {new} = 1\n    case Named(k, n, _):\n        {same} = k + n
    {new} = collections.defaultdict(int)\nfor x in {list}:\n    {same}[x] += {int}\n{same} = sum({same}.values())
    {new} = collections.deque({list}, 3)\n{same}.append({int})\n{same} = {same}[0]
    {new} = {int}\n(a, {same}), *_ = [{pair}, {int}]
    {list_}.extend(x for x in {list}[:3] if x)
    {list_}[0:1] = [{int}]
    {list_}.sort(reverse=True)
    {new} = {int} if {bool} else {int} if {bool} else {int}
    {new} = str({any_})[:30]
    {new} = {any}\nif {bool}:\n    {same} = {same}
    {new} = {any_}
    {new} = {int}\nwhile {same} > 3:\n    {same} //= 2\n    if {same} == 5:\n        continue\n    {same} -= 1
    pass
    "text"
    lambda: {int}
    {new} = {int}\nassert {same} == {same}, 'no'
    {new} = {float}
    {new} = {nested}
    {new} = {node}
    {new} = {int}\nif {bool}: {same} = -{same}; {same} -= 1
    {new} = {int}\n{same} = less({same}, ({same} := {int}))
    {new} = 0\nlag = 0.5\nfor x in {list}:\n    {same} = lag\n    lag = x
    {new} = 0\n[({same} := x) for x in {list}]
    try:\n    {new}, _ = paired({int})\nexcept ValueError:\n    {same} = 3
    for x in {list}[:3]:\n{block}\n    {nested_}[2].append(x)
    {nested_}[2][:1] = [{int}]
    {nested_}[2].append({int})
    for x in {list}[:3]:\n{block}\n    {list_}.append(x)
    import math\n{new} = math.gcd({int}, 12)
    from math import gcd, isqrt as root\n{new} = gcd(6, root(abs({int})))
    try:\n    import no_such_module as found\nexcept ImportError:\n    found = None\n{new} = int(found is None)
    {new} = {int}\nother = {same}\ndel {same}\n{same} = other
    for x in {list}[:3]:\n    other = x\n    {last} += other\n    del other
    del {list_}[:1]
    {dict_}['old'] = {int}\ndel {dict_}['old']
    {new} = len({list_}) * 10 + grown({list_}) + len({list_})
    {new} = [{int}, guarded({int}), strict({int}), {last}][{int} % 4]
    if within({int}, low={int}) > guarded({int}):\n{block}
    for x in [guarded({int}), within({int})]:\n{block}
    {last} += within({int}) % 10
    {list_}.append(within({int}))
    match {data}:\n    case Data(1, x):\n        {new} = x\n    case Data(k=k, n=int(x)) if x > k:\n        {same} = x - k\n    case _:\n        {same} = {int}
    match {any_}:\n    case None:\n        {new} = {int}\n    case int() | float():\n        {same} = 1\n    case str(x):\n        {same} = len(x)\n    case Named() | Data():\n        {same} = 2\n    case [x, *_]:\n        {same} = 3\n    case _:\n        {block}\n        {same} = 4
    match {int}, {str}:\n    case (1 | 2) as k, _:\n        {new} = k\n    case x, '' | 'a':\n        {same} = x\n    case _, s:\n        {same} = len(s)
    match {frozen}:\n    case Frozen(k, 3):\n        {new} = k\n    case x if {bool}:\n        {same} = x.n\n    case other:\n        {same} = other.k
    {new} = 0\nmatch {str}:\n    case 'a' | 'b':\n        {same} = 1\n    case x if x > 'c':\n        {block}\n        {same} = 2
    {new} = {int}\nwith contextlib.suppress(ZeroDivisionError, KeyError):\n    {same} = 10 // {int}
    {new} = 0\nfor x in {list}:\n    if {bool}:\n        {same} = x\n        break\nelse:\n{block}\n    {same} = {int}
    with opened({int}) as x, opened({int}):\n    {new} = x\n    if {bool}:\n        raise KeyError(2)
    {new} = operator.itemgetter(1, 0)({pair})\n{same} = {same}[0]
    """
)
OF_OBJECTS = _statements(
    r"""
    self.a += 1
    self.b = {int} % 1000
    self.seen.append({int})
    {new} = self.a + self.b
    {new} = self.more({int})
    self.a, self.b = self.b, self.a
    {new} = len(self.seen[-3:])
    {new} = self.fixed({int})
    {new} = self.LIMIT + {int}
    {new} = self.size
    self.last = {int}\n{new} = self.last
    self.counts[{int} % 3] = self.counts.get(1, 0) + 1
    {new} = len(self.counts)
    for x in self.seen[-2:]:\n{block}
    self.nodes.add({int} % 100)
    {new} = self.nodes.n
    {new}, self.a = self.a, {int}
    if self.a > {int}:\n{block}\n    self.a = 0
    {new} = type(self).LIMIT
    {new} = super().__init__ is not None
    {new} = second(self.more({int}), {int})
    self.seen.append({int})\n{new} = self.seen
    {new} = [self.a, self.step({int}), self.a][{int} % 3]
    {new} = self.a + self.step({int}) * 2 - self.a
    self.seen.append(self.step({int}))
    {new} = less(self.step({int}), b=strict({int}))
    self.counts[1] = {int}\ndel self.counts[1]
    self.extra = {int}\n{new} = self.extra\ndel self.extra
    """
)
OF_STATE = _statements(
    r"""
    self.value.update({int})
    self.items.add({int})
    self.table.put({int} % 4, {int})
    self.items.clear()
    {new} = self.table.get(1) or 0
    {new} = sum(self.items.get() or [])
    self.value.clear()
    self.items.update([{int}])
    self.items.add_all([{int}, {int}])
    {new} = sum(self.table.values())
    self.table.remove({int} % 4)
    del self.table[{int} % 4]
    self.table[{int} % 4] = within({int})
    self.value.update(guarded({int}))
    self.total.add({int})
    {new} = int(self.table.contains({int} % 4))
    {new} = self.total.get() or 0
    if self.table.is_empty():\n{block}
    {new} = ctx.get_current_key()
    yield SIDE, {int}
    """
)
OF_TIMERS = _statements(
    r"""
    ctx.timer_service().register_event_time_timer(ctx.timestamp() + {int} % 20)
    ctx.timer_service().register_event_time_timer(ctx.timestamp() + {int} % 20)
    ctx.timer_service().delete_event_time_timer({int} % 50)
    {new} = max(ctx.timer_service().current_watermark(), 0)
    """
)
CALLED = ("method", "call", "partial", "closure", "decorated")
WINDOWS = (
    "TumblingEventTimeWindows.of(Time.milliseconds(7))",
    "SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))",
    "EventTimeSessionWindows.with_gap(Time.milliseconds(2))",
)
EMPTY = {"int": "0", "pair": "(0, 0)", "list": "[]", "named": "Named(0, 0, '')"}
DECLARED = (
    ("int", "Types.LONG()"),
    ("str", "Types.STRING()"),
    ("pair", "Types.TUPLE([Types.LONG(), Types.LONG()])"),
    ("triple", "Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()])"),
    ("row", "Types.ROW_NAMED(['k', 'n'], [Types.LONG(), Types.LONG()])"),
    ("list", "Types.LIST(Types.LONG())"),
)
LEAVES = {
    "int": "3", "str": "'b'", "bool": "True", "pair": "(1, 2)", "triple": "(1, 'c', 2)", "list": "[1, 2]",
    "dict": "{'k': 1, 'n': 2, 's': 'd'}", "row": "Row(k=1, n=2)", "named": "Named(1, 2, 'e')",
    "data": "Data(1, 2, 'g')", "frozen": "Frozen(1)", "maybe": "None", "float": "1.5",
    "nested": "((1, 2), 3, [4])", "node": "Node(2)",
}  # fmt: skip

HOLE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
MOST_DEEP = 3


OBJECT = """
LIMIT = 5

def __init__(self):
    super().__init__()
    self.a, self.b, self.seen = 1, 2, []
    self.counts: dict[int, int] = {}
    self.nodes = Node(3)

def more(self, x):
    return x % 100 + self.b

def step(self, x):
    self.a += 1
    if x > 3:
        return self.a
    return x

@staticmethod
def fixed(x):
    return x % 10

@property
def size(self):
    return len(self.seen) + self.a
"""


_NAMES = ("k", "n", "s", "items", "m")
SELECTORS = {
    "pair": [("itemgetter(0)", "int"), ("itemgetter(1, 0)", "pair")],
    "triple": [("itemgetter(1)", "str"), ("itemgetter(2, 0)", "pair")],
    "dict": [("itemgetter('n')", "int"), ("itemgetter('n', 's', 'k')", "triple")],
    "row": [("attrgetter('k')", "int"), ("itemgetter('k', 'n')", "pair")],
    "named": [
        ("attrgetter('n')", "int"),
        ("itemgetter(2)", "str"),
        ("attrgetter('n', 's', 'k')", "triple"),
    ],
    "data": [("attrgetter('label')", "str"), ("methodcaller('both')", "int")],
    "str": [("methodcaller('upper')", "str"), ("methodcaller('count', 'a')", "int")],
}
"""Functions of the module `operator` for kinds of records, and the kinds of their results."""
WIDE = {
    "wide_tuple": ("({int}, {int}, {str}, {list}, {int})", [f"r[{place}]" for place in range(5)]),
    "wide_row": ("Row({int}, {int}, {str}, {list}, {int})", [f"r[{place}]" for place in range(5)]),
    "wide_named_row": (
        "Row(k={int}, n={int}, s={str}, items={list}, m={int})",
        [f"r.{name}" for name in ("k", "n", "s")] + ["r['items']", "r.m"],
    ),
    "wide_dict": (
        "{{'k': {int}, 'n': {int}, 's': {str}, 'items': {list}, 'm': {int}}}",
        [f"r['{name}']" for name in _NAMES],
    ),
    "wide_named": ("Wide({int}, {int}, {str}, {list}, {int})", [f"r.{name}" for name in _NAMES]),
    "wide_data": ("Broad({int}, {int}, {str}, {list}, {int})", [f"r.{name}" for name in _NAMES]),
}
"""How wide records are made, and how their fields are read."""

EXPRESSIONS |= {kind: (made,) for kind, (made, _) in WIDE.items()}
LEAVES |= {
    kind: HOLE.sub(lambda hole: LEAVES.get(hole[1], hole[0][0]), made)
    for kind, (made, _) in WIDE.items()
}


class _MissingVariableError(Exception):
    """A template needs a variable of a kind that there is none of."""


class Writer:
    """Writes functions and a pipeline of them. What it writes depends on the seed alone."""

    READ_SIDE_OUTPUTS = 0.5
    """The share of side outputs that are read."""

    TIMERS = OF_TIMERS

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._definitions: list[str] = []
        self._count = 0
        self._more: tuple[str, ...] = ()
        self._is_timed = self._draw.random() < 0.5
        self._has_side_output = False

    def program(self) -> tuple[str, list[str]]:
        """The text of a module, and the names of what is seen."""
        numbers = self._draw.choice(("from_collection(list(range(40)))", "from_sequence(0, 39)"))
        lines, names = [f"s0 = env.{numbers}"], ["end"]
        stream, kind = "s0", "int"
        if self._draw.random() < 0.3:
            stream, kind = "read", "dict"
            lines.append("read = documents(env)")
        if self._is_timed:
            timed = "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())"
            lines += [
                f"{each} = {each}.assign_timestamps_and_watermarks({timed})"
                for each in dict.fromkeys(["s0", stream])
            ]
        steps = (*self.STEPS, *self.TIMED_STEPS) if self._is_timed else self.STEPS
        for number in range(1, self._draw.randint(2, 5)):
            step = self._draw.choice(steps)
            self._has_side_output = False
            made, kind = step(self, stream, kind, self._draw.choice(RECORDS))
            stream = f"s{number}"
            lines.append(f"{stream} = {made}")
            if self._has_side_output and self._draw.random() < self.READ_SIDE_OUTPUTS:
                names.append(f"side{number}")
                lines.append(f"seen({stream}.get_side_output(SIDE), 'side{number}')")
            if self._draw.random() < 0.3:
                names.append(stream)
                lines.append(f"seen({stream}, '{stream}')")
            if self._draw.random() < 0.2:
                lines.append(f"{stream} = {stream}.rebalance()")
        lines.append(f"seen({stream}, 'end')")
        draw = "def draw(env):\n" + indent("\n".join(lines), "    ")
        return "\n\n".join([HEAD, *self._definitions, draw]) + "\n", names

    # Expressions and statements

    def expression(self, kind: str, variables: dict[str, str], depth: int = 0) -> str:
        known = [name for name, of in variables.items() if of == kind]
        if known and self._draw.random() < 0.3 + 0.2 * depth:
            return self._draw.choice(known)
        if depth > MOST_DEEP:
            return LEAVES[kind]
        template = self._draw.choice(EXPRESSIONS[kind])
        try:
            return f"({self._filled(template, variables, depth)})"
        except _MissingVariableError:
            return LEAVES[kind]

    def block(self, variables: dict[str, str], emitted: str, depth: int = 0) -> list[str]:
        """Statements. Some of them are `emitted`, which may have holes. The variables that they set are added."""
        lines: list[str] = []
        for _ in range(self._draw.randint(1, 3)):
            if depth > 1 or self._draw.random() < 0.25:
                lines.append(self._filled(emitted, variables, 1))
                continue
            template = self._draw.choice((*STATEMENTS, *self._more))
            try:
                lines += self._statement(template, variables, emitted, depth)
            except _MissingVariableError:
                continue
        return lines or ["pass"]

    def _statement(
        self, template: str, variables: dict[str, str], emitted: str, depth: int
    ) -> list[str]:
        self._count += 1
        new, kind = f"v{self._count}", "int"
        if "{any}" in template:
            kind = self._draw.choice(RECORDS)
            template = template.replace("{any}", f"{{{kind}}}")
        inner, lines = dict(variables), []
        for line in template.splitlines():
            if line.startswith(("for", "def")):
                lines.append(self._filled(line, variables, 1, new))
                inner["x"] = "int"
            elif line.strip() == "{block}":
                block = self.block(dict(inner), emitted, depth + 1)
                lines.append(indent("\n".join(block), line.removesuffix("{block}") or "    "))
            else:
                lines.append(self._filled(line, inner if line[0] == " " else variables, 1, new))
        if "{new}" in template:
            variables[new] = kind
        return lines

    def _filled(self, template: str, variables: dict[str, str], depth: int, new: str = "") -> str:
        def fill(hole: re.Match[str]) -> str:
            kind = hole[1]
            if kind is None:
                return hole[0][0]
            if kind in ("new", "same"):
                return new
            if kind == "last" or kind.endswith("_"):
                of = "int" if kind == "last" else kind[:-1]
                known = [
                    name
                    for name, its in variables.items()
                    if of in (its, "any") and (kind != "last" or name[0] == "v")
                ]
                if not known:
                    raise _MissingVariableError
                return self._draw.choice(known)
            return self.expression(kind, variables, depth + 1)

        return HOLE.sub(fill, template)

    # Functions

    def _name(self) -> str:
        self._count += 1
        return f"F{self._count}"

    def _method(
        self, head: str, variables: dict[str, str], emitted: str, first: tuple[str, ...] = ()
    ) -> str:
        """A function whose last statement is `emitted`."""
        lines = [*first, *self.block(variables, emitted), self._filled(emitted, variables, 1)]
        return f"def {head}:\n" + indent("\n".join(lines), "    ")

    def _class(self, kind: str, *methods: str, state: bool = False) -> str:
        name = self._name()
        opened = [
            "value = runtime_context.get_state(ValueStateDescriptor('value', Types.PICKLED_BYTE_ARRAY()))",
            "items = runtime_context.get_list_state(ListStateDescriptor('items', Types.PICKLED_BYTE_ARRAY()))",
            "table = runtime_context.get_map_state(MapStateDescriptor('table', Types.INT(), Types.INT()))",
            "total = runtime_context.get_reducing_state(ReducingStateDescriptor('total', max, Types.LONG()))",
        ]
        made = cleandoc(OBJECT)
        if state:
            lines = "\n".join(f"    self.{line}" for line in opened)
            made += f"\ndef open(self, runtime_context):\n{lines}"
        body = indent("\n".join([made, *methods]), "    ")
        self._definitions.append(f"class {name}({kind}):\n{body}")
        return f"{name}()"

    def _function(self, base: str, method: str, kinds: dict[str, str], emitted: str) -> str:
        """A lambda, a function, an object with a method, or something else that can be called."""
        shape = self._draw.choice((*("lambda", "def", "class") * 3, *CALLED))
        arguments = ", ".join(kinds)
        if shape == "lambda" and emitted.startswith("return"):
            return f"lambda {arguments}: {self._filled(emitted[7:], kinds, 0)}"
        if shape == "class":
            self._more = OF_OBJECTS
            body = self._method(f"{method}(self, {arguments})", dict(kinds), emitted)
            self._more = ()
            return self._class(base, body)
        name = self._name()
        if shape in ("method", "call"):
            called = "__call__" if shape == "call" else "run"
            self._more = OF_OBJECTS
            body = self._method(f"{called}(self, {arguments})", dict(kinds), emitted)
            self._more = ()
            made = self._class("object", body)
            return made if shape == "call" else f"{made}.run"
        if shape == "partial":
            head = f"{name}(by, {arguments}, *, more=2)"
            variables = {**kinds, "by": "int", "more": "int"}
            self._definitions.append(self._method(head, variables, emitted))
            return f"functools.partial({name}, 4, more=1)"
        if shape == "closure":
            inner = self._method(
                f"run({arguments})", {**kinds, "by": "int", "names": "list"}, emitted
            )
            lines = indent(f"names = [by, 2]\n{inner}\nreturn run", "    ")
            self._definitions.append(f"def {name}(by=3):\n{lines}")
            return f"{name}({self._draw.randint(0, 9)})"
        decorator = "@same_function\n" if shape == "decorated" else ""
        method = self._method(f"{name}({arguments})", dict(kinds), emitted)
        self._definitions.append(decorator + method)
        return name

    def _map(self, kind: str, to: str) -> str:
        return self._function("MapFunction", "map", {"r": kind}, f"return {{{to}}}")

    def _reduce(self, kind: str) -> str:
        return self._function(
            "ReduceFunction", "reduce", {"a": kind, "b": kind}, f"return {{{kind}}}"
        )

    def _key(self, kind: str) -> str:
        return f"lambda r: {self.expression('int', {'r': kind}, 1)} % 3"

    def _keyed(self, stream: str, kind: str) -> str:
        return f"{stream}.key_by({self._key(kind)})"

    def _keyed_by_any(self, stream: str, kind: str) -> str:
        """Keyed by records of any kind that can be keys."""
        to = self._draw.choice(("int", "str", "bool", "pair", "triple", "row", "named", "frozen"))
        key = self._function("KeySelector", "get_key", {"r": kind}, f"return {{{to}}}")
        return f"{stream}.key_by({key})"

    def _second(self) -> tuple[str, str]:
        """Another stream, and the kind of its records."""
        kind = self._draw.choice(RECORDS)
        return f"s0.map({self._map('int', kind)})", kind

    def _stateful(self, base: str, inputs: dict[str, str], to: str) -> str:
        """A function with keyed state, a method for each input, and timers where there is time."""
        self._has_side_output = True
        old, emitted = ("old = self.value.value()",), f"yield {{{to}}}"
        self._more = (*OF_OBJECTS, *OF_STATE, *(self.TIMERS if self._is_timed else ()))
        methods = [
            self._method(f"{name}(self, r, ctx)", {"r": kind, "old": "maybe"}, emitted, old)
            for name, kind in inputs.items()
        ]
        self._more = (*OF_OBJECTS, *OF_STATE)  # a timer that sets another would fire forever
        if self._is_timed:
            variables = {"timestamp": "int", "old": "maybe"}
            methods.append(self._method("on_timer(self, timestamp, ctx)", variables, emitted, old))
        self._more = ()
        return self._class(base, *methods, state=True)

    def _aggregate(self, kind: str, to: str) -> str:
        of = self._draw.choice(list(EMPTY))
        add = self._method(
            "add(self, value, accumulator)", {"value": kind, "accumulator": of}, f"return {{{of}}}"
        )
        result = self._filled(f"return {{{to}}}", {"accumulator": of}, 0)
        return self._class(
            "AggregateFunction",
            f"def create_accumulator(self):\n    return {EMPTY[of]}",
            add,
            f"def get_result(self, accumulator):\n    {result}",
            "def merge(self, acc_a, acc_b):\n    return acc_a",
        )

    # Steps: the code of a stream, and the kind of its records

    def _mapped(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        return f"{stream}.map({self._map(kind, to)})", to

    def _selected(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        """Uses a function of the module `operator`, and a key that is selected by another."""
        if kind not in SELECTORS:
            stream, kind = self._mapped(stream, kind, self._draw.choice(list(SELECTORS)))
        if self._draw.random() < 0.5:
            stream = f"{stream}.key_by(operator.{self._draw.choice(SELECTORS[kind])[0]})"
        function, to = self._draw.choice(SELECTORS[kind])
        return f"{stream}.map(operator.{function})", to

    def _filtered(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        keep = self._function("FilterFunction", "filter", {"r": kind}, "return {bool}")
        return f"{stream}.filter({keep})", kind

    def _flat_mapped(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        split = self._function("FlatMapFunction", "flat_map", {"r": kind}, f"yield {{{to}}}")
        return f"{stream}.flat_map({split})", to

    def _reduced(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        return f"{self._keyed_by_any(stream, kind)}.reduce({self._reduce(kind)})", kind

    def _rolled(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        fold = self._draw.choice(("sum(1)", "min(1)", "max_by(1)", "min_by(0)"))
        return f"{stream}.map({self._map(kind, 'pair')}).key_by(lambda r: r[0] % 3).{fold}", "pair"

    def _declared(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        to, declared = self._draw.choice(DECLARED)
        return f"{stream}.map({self._map(kind, to)}, output_type={declared})", to

    def _narrowed(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        """Reads some fields of wide records after an exchange, which may also get wide records of another class."""
        wide = self._draw.choice(list(WIDE))
        _, read = WIDE[wide]
        makes = (self._mapped, self._flat_mapped, self._tagged, self._processed)
        made, _ = self._draw.choice((*makes, self._connected_by_key))(stream, kind, wide)
        self._has_side_output = False
        if self._draw.random() < 0.3:
            alike = [other for other, (_, reads) in WIDE.items() if reads == read]
            other, _ = self._mapped(stream, kind, self._draw.choice(alike))
            made = f"{made}.union({other})"
        places = self._draw.sample((0, 1, 4), 2)
        some = [read[place] for place in places]
        exchange = self._draw.choice(
            (f"key_by(lambda r: {some[0]} % 3)", f"key_by(lambda r: {read[0]})", "rebalance()")
        )
        made = f"{made}.{exchange}"
        reader = self._draw.choice(
            (
                "filter(lambda r: {0} > 3).map(lambda r: ({0}, {1}))",
                "map(lambda r: ({1}, {0} + {1}))",
                "flat_map(lambda r: [({0}, x) for x in range({1} % 3)])",
                "map(lambda r: ({0}, {1}) if {0} % 2 else ({1}, len({2})))",
                "map(lambda r: (len(str(r)), {0}))",
                "map(lambda r: ({0}, len({3})))",
            )
        )
        return f"{made}.{reader.format(*some, read[2], read[3])}", "pair"

    def _united(self, stream: str, kind: str, _to: str) -> tuple[str, str]:
        other = self._map(kind, kind)
        if kind == "pair" and self._draw.random() < 0.5:
            other = f"lambda v: ({self._draw.choice(('v[0]', 'v[1] % 3', '1'))}, {self._draw.choice((1, True, 2.0))})"
        return f"{stream}.union({stream}.map({other}))", kind

    def _joined(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        second, other = self._second()
        windows = self._draw.choice(WINDOWS)
        pair = self._function("JoinFunction", "join", {"a": kind, "b": other}, f"return {{{to}}}")
        keys = f"where({self._key(kind)}).equal_to({self._key(other)})"
        return f"{stream}.join({second}).{keys}.window({windows}).apply({pair})", to

    def _joined_by_interval(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        second, other = self._second()
        emitted = f"yield {{{to}}}"
        method = self._method(
            "process_element(self, left, right, ctx)", {"left": kind, "right": other}, emitted
        )
        made = self._class("ProcessJoinFunction", method)
        between = "between(Time.milliseconds(-3), Time.milliseconds(4))"
        joined = f"{self._keyed(stream, kind)}.interval_join({self._keyed(second, other)})"
        return f"{joined}.{between}.process({made})", to

    def _grouped_with(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        second, other = self._second()
        windows = self._draw.choice(WINDOWS)
        first = (
            "lefts, rights = list(first), list(second)",
            "size = len(lefts) - len(rights)",
            "for left in lefts:",
            "    size += len(rights)",
            "    yield size",
        )
        emitted = f"yield {{{to}}}"
        method = self._method("co_group(self, first, second)", {"size": "int"}, emitted, first)
        made = self._class("CoGroupFunction", method)
        keys = f"where({self._key(kind)}).equal_to({self._key(other)})"
        return f"{stream}.co_group({second}).{keys}.window({windows}).apply({made})", to

    def _counted(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        window = self._draw.choice(("count_window(3)", "count_window(4, 2)"))
        window = f"{self._keyed_by_any(stream, kind)}.{window}"
        return self._window_function(window, kind, to)

    def _awaited(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        method = self._method("async_invoke(self, r)", {"r": kind}, f"return [{{{to}}}]")
        made = self._class("AsyncFunction", f"async {method}")
        return f"AsyncDataStream.ordered_wait({stream}, {made}, Time.seconds(60), 3)", to

    def _tagged(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        self._has_side_output = True
        tag = self._draw.choice(("SIDE", "SIDES[0]"))
        yields = f"yield {tag}, {{int}}\nyield {{{to}}}"
        method = self._method("process_element(self, r, ctx)", {"r": kind}, yields)
        return f"{stream}.process({self._class('ProcessFunction', method)})", to

    def _processed(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        made = self._stateful("KeyedProcessFunction", {"process_element": kind}, to)
        return f"{self._keyed(stream, kind)}.process({made})", to

    def _connected(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        second, other = self._second()
        methods = [
            self._method(f"flat_map{number}(self, r)", {"r": of}, f"yield {{{to}}}")
            for number, of in enumerate((kind, other), 1)
        ]
        made = self._class("CoFlatMapFunction", *methods)
        return f"{stream}.connect({second}).flat_map({made})", to

    def _connected_by_key(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        second, other = self._second()
        inputs = {"process_element1": kind, "process_element2": other}
        made = self._stateful("KeyedCoProcessFunction", inputs, to)
        keys = f"{self._key(kind)}, {self._key(other)}"
        return f"{stream}.connect({second}).key_by({keys}).process({made})", to

    def _broadcast(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        self._has_side_output = True
        second, other = self._second()
        emitted = f"yield {{{to}}}"
        stored = self._filled("{int} % 3, {int}", {"r": other}, 1)
        methods = [
            self._method(
                "process_element(self, r, ctx)",
                {"r": kind, "rule": "maybe"},
                emitted,
                ("rule = ctx.get_broadcast_state(RULES).get(1)",),
            ),
            self._method(
                "process_broadcast_element(self, r, ctx)",
                {"r": other},
                f"yield SIDE, {{int}}\n{emitted}",
                (f"ctx.get_broadcast_state(RULES).put({stored})",),
            ),
        ]
        made = self._class("BroadcastProcessFunction", *methods)
        return f"{stream}.connect({second}.broadcast(RULES)).process({made})", to

    def _windowed(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        self._has_side_output = True
        windows = self._draw.choice(WINDOWS)
        lateness = self._draw.choice(("", ".allowed_lateness(10)"))
        keyed = (
            self._keyed(stream, kind) if "Session" in windows else self._keyed_by_any(stream, kind)
        )
        window = f"{keyed}.window({windows}){lateness}.side_output_late_data(SIDE)"
        return self._window_function(window, kind, to, merging="Session" in windows)

    def _windowed_together(self, stream: str, kind: str, to: str) -> tuple[str, str]:
        windows = self._draw.choice(WINDOWS)
        window = f"{stream}.window_all({windows})"
        return self._window_function(window, kind, to, merging="Session" in windows, keyed=False)

    def _window_function(
        self, window: str, kind: str, to: str, *, merging: bool = False, keyed: bool = True
    ) -> tuple[str, str]:
        """A window with a function: one of a fold, of all elements, or of both."""
        function = self._draw.choice(
            ("reduce", "reduce", "process", "process", "apply", "aggregate")
        )
        if function == "aggregate" and merging:
            function = "process"  # the accumulators of these programs don't merge
        both = function in ("reduce", "aggregate") and self._draw.random() < 0.4
        folded = kind
        if function == "aggregate":
            folded = self._draw.choice(RECORDS) if both else to
            function = f"aggregate({self._aggregate(kind, folded)}"
        elif function == "reduce":
            function = f"reduce({self._reduce(kind)}"
        else:
            function += "("
        if function[-1] != "(" and not both:
            return f"{window}.{function})", folded
        name, arguments, base = "process", "context, elements", "Process"
        if function == "apply(":
            name, arguments, base = "apply", "window, elements", ""
        head = f"{name}(self, {'key, ' * keyed}{arguments})"
        first = ("items = list(elements)", "item, size = items[0], len(items)")
        variables = {"item": folded, "size": "int"}
        method = self._method(head, variables, f"yield {{{to}}}", first)
        made = self._class(f"{base}{'' if keyed else 'All'}WindowFunction", method)
        return f"{window}.{function}{', ' if both else ''}{made})", to

    STEPS: Any = (
        *(_mapped, _mapped, _filtered, _flat_mapped, _reduced, _counted, _tagged, _processed),
        *(_connected, _connected_by_key, _broadcast, _rolled, _declared, _united, _awaited),
        *(_narrowed, _narrowed, _selected),
    )
    TIMED_STEPS: Any = (
        *(_windowed, _windowed, _windowed_together, _processed, _joined, _joined_by_interval),
        _grouped_with,
    )


def with_prints(text: str) -> str:
    """A program that prints what it shows by `seen`, each record in a line that begins with @."""
    return text.replace("from forms import seen\n", _PRINTS)


_PRINTS = """
def seen(stream, name):
    stream.map(lambda value: f"@{name} {value!r}").print()
"""


def random_program(seed: int) -> tuple[str, list[str]]:
    """The text of a module that defines `draw(env)`, and the names of the streams that it shows by `seen`."""
    return Writer(seed).program()
