"""The rewrite rules, in order. Each rule is a file, with an example in its docstring. Some have an invariant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen.rules.alternate_inputs import alternate_inputs
from opchain.compiler.codegen.rules.cache_attributes import cache_attributes
from opchain.compiler.codegen.rules.convert_declared_types import (
    convert_declared_types,
    nothing_is_left_to_convert,
)
from opchain.compiler.codegen.rules.count_keys import count_keys
from opchain.compiler.codegen.rules.count_once import count_once, nothing_is_counted_by_record
from opchain.compiler.codegen.rules.decide_in_branches import decide_in_branches
from opchain.compiler.codegen.rules.detect_str_results import detect_str_results
from opchain.compiler.codegen.rules.drop_copies import drop_copies
from opchain.compiler.codegen.rules.extend_lists import extend_lists
from opchain.compiler.codegen.rules.fold_windows import fold_windows
from opchain.compiler.codegen.rules.fuse_lists import fuse_lists
from opchain.compiler.codegen.rules.inline_broadcast_states import inline_broadcast_states
from opchain.compiler.codegen.rules.inline_functions import every_callee_is_bound, inline_functions
from opchain.compiler.codegen.rules.inline_state import every_table_is_guarded, inline_state
from opchain.compiler.codegen.rules.propagate_copies import propagate_copies
from opchain.compiler.codegen.rules.read_fields import read_fields
from opchain.compiler.codegen.rules.read_json import read_json
from opchain.compiler.codegen.rules.send_fields import nothing_is_sent_twice, send_fields
from opchain.compiler.codegen.rules.skip_sort import skip_sort
from opchain.compiler.codegen.rules.store_changed_fields import store_changed_fields
from opchain.compiler.codegen.rules.trust_known_types import trust_known_types
from opchain.compiler.codegen.rules.unpack_records import unpack_records
from opchain.compiler.codegen.rules.use_arrays import use_arrays
from opchain.compiler.codegen.rules.write_aggregations import write_aggregations
from opchain.compiler.codegen.rules.write_json import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.codegen.form import Form


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite of the form, and a check of its result. Rules that `inline` can be disabled."""

    apply: Callable[[Form], None]
    holds: Callable[[Form], None] | None = None
    inlines: bool = True

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.apply.__name__


RULES: tuple[Rule, ...] = (
    Rule(inline_functions, every_callee_is_bound),
    Rule(decide_in_branches),
    Rule(drop_copies, inlines=False),
    Rule(read_json),
    Rule(write_json),
    Rule(read_fields),
    Rule(fuse_lists),
    Rule(unpack_records),
    Rule(convert_declared_types, nothing_is_left_to_convert, inlines=False),
    Rule(write_aggregations),
    Rule(drop_copies, inlines=False),
    Rule(propagate_copies),
    Rule(unpack_records),
    Rule(trust_known_types),
    Rule(store_changed_fields),
    Rule(unpack_records),
    Rule(fold_windows),
    Rule(count_keys),
    Rule(propagate_copies),
    Rule(send_fields, nothing_is_sent_twice),
    Rule(use_arrays),
    Rule(inline_broadcast_states),
    Rule(inline_state, every_table_is_guarded),
    Rule(count_once, nothing_is_counted_by_record, inlines=False),
    Rule(detect_str_results, inlines=False),
    Rule(extend_lists, inlines=False),
    Rule(cache_attributes),
    Rule(skip_sort),
    Rule(alternate_inputs),
)

RULE_NAMES: tuple[str, ...] = tuple(dict.fromkeys(rule.name for rule in RULES))
"""The names of the rules, in order. A rule that is applied more than once is listed at its first place."""
