r"""Texts that are split into words all at once.

    for value in values:
        keys_0.extend(value.lower().split())

    keys_0.extend(whole_text(values).lower().split())

White space parts words, and a line end is white space. So the words of texts with a line end between each two are
those of the texts, one after the other; and how a letter is spelled in lower or upper case depends on the letters
of its word alone. Nothing of this raises.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.compiler.codegen.names import Names
    from opchain.compiler.codegen.source_text import SourceText

_LOOP = "    for value in values:"
_WORDS = re.compile(
    r" +(?P<list>\w+)\.extend\(value(?P<calls>(\.(casefold|lower|strip|upper)\(\))*\.split\(\)\).*)"
)


def split_at_once(loop: SourceText, names: Names) -> None:
    """Rewrites a loop over texts that does nothing but gather their words."""
    words = _WORDS.fullmatch(loop.lines[-1]) if loop.lines[:-1] == [_LOOP] else None
    if words is None:
        return
    names.bind("whole_text", "shared")
    loop.lines[:] = [f"    {words['list']}.extend(whole_text(values){words['calls']}"]
    del loop.operators[0]
