from __future__ import annotations

from operator import itemgetter

from opchain.common import Row
from opchain.runtime.functions.key_selectors import WithKey


def test_with_key_returns_the_key_and_the_record() -> None:
    assert WithKey(itemgetter(1)).map(("a", 1)) == Row(f0=1, f1=("a", 1))
