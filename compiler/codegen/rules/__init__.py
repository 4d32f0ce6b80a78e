"""The rewrite rules, in order. Each rule is a file, with an example in its docstring and an invariant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen.rules.any_order import any_order
from opchain.compiler.codegen.rules.broadcast_states import broadcast_states
from opchain.compiler.codegen.rules.count_keys import count_keys
from opchain.compiler.codegen.rules.count_once import count_once, nothing_is_counted_by_record
from opchain.compiler.codegen.rules.declared_forms import (
    declared_forms,
    nothing_is_left_to_declare,
)
from opchain.compiler.codegen.rules.drop_copies import drop_copies
from opchain.compiler.codegen.rules.extend_lists import extend_lists
from opchain.compiler.codegen.rules.forward_names import forward_names
from opchain.compiler.codegen.rules.inline_functions import (
    every_call_is_accounted_for,
    inline_functions,
)
from opchain.compiler.codegen.rules.narrow_state import narrow_state
from opchain.compiler.codegen.rules.notice_texts import notice_texts
from opchain.compiler.codegen.rules.plain_keys import plain_keys
from opchain.compiler.codegen.rules.read_attributes import read_attributes
from opchain.compiler.codegen.rules.read_fields import read_fields
from opchain.compiler.codegen.rules.read_json import read_json
from opchain.compiler.codegen.rules.send_fields import nothing_is_sent_twice, send_fields
from opchain.compiler.codegen.rules.state_tables import (
    every_table_is_looked_for,
    state_tables,
)
from opchain.compiler.codegen.rules.take_apart import take_apart
from opchain.compiler.codegen.rules.take_turns import take_turns
from opchain.compiler.codegen.rules.times_in_records import times_in_records
from opchain.compiler.codegen.rules.use_arrays import use_arrays
from opchain.compiler.codegen.rules.whole_text import whole_text
from opchain.compiler.codegen.rules.write_aggregations import write_aggregations
from opchain.compiler.codegen.rules.write_json import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.codegen.form import Form


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite of the form, and a check of its invariant. A rule that `inlines` can be disabled."""

    apply: Callable[[Form], None]
    holds: Callable[[Form], None] | None = None
    inlines: bool = True

    @property
    def name(self) -> str:
        """How the rule is called."""
        return self.apply.__name__


RULES: tuple[Rule, ...] = (
    Rule(inline_functions, every_call_is_accounted_for),
    Rule(read_json),
    Rule(write_json),
    Rule(read_fields),
    Rule(write_aggregations),
    Rule(drop_copies, inlines=False),
    Rule(take_apart),
    Rule(declared_forms, nothing_is_left_to_declare, inlines=False),
    Rule(drop_copies, inlines=False),
    Rule(take_apart),
    Rule(plain_keys),
    Rule(narrow_state),
    Rule(take_apart),
    Rule(times_in_records),
    Rule(count_keys),
    Rule(forward_names),
    Rule(send_fields, nothing_is_sent_twice),
    Rule(use_arrays),
    Rule(state_tables, every_table_is_looked_for),
    Rule(count_once, nothing_is_counted_by_record, inlines=False),
    Rule(notice_texts, inlines=False),
    Rule(extend_lists, inlines=False),
    Rule(whole_text),
    Rule(broadcast_states),
    Rule(read_attributes),
    Rule(any_order),
    Rule(take_turns),
)

RULE_NAMES: tuple[str, ...] = tuple(dict.fromkeys(rule.name for rule in RULES))
"""The names of the rules, in their order; a rule that is applied again counts at its first place."""
