from __future__ import annotations

from operator import itemgetter

import pytest

from opchain.common import Types
from opchain.compiler.graph.partitioner import KeyBy, Partitioner, PartitionerKind
from opchain.datastream.functions import KeySelector

FORWARDS = {
    PartitionerKind.FORWARD,
    PartitionerKind.FORWARD_FOR_UNSPECIFIED,
    PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH,
}


def user(value: int) -> int:
    return value


class ByUser(KeySelector[int, int]):
    def get_key(self, value: int) -> int:
        return value


@pytest.mark.parametrize("kind", PartitionerKind)
def test_partitioner_kinds_know_whether_they_are_forward_or_pointwise(
    kind: PartitionerKind,
) -> None:
    assert kind.is_forward is (kind in FORWARDS)
    assert Partitioner(kind).is_forward is kind.is_forward
    assert kind.is_pointwise is (kind in FORWARDS or kind is PartitionerKind.RESCALE)
    assert kind.ship_strategy == ("FORWARD" if kind in FORWARDS else kind.value)


@pytest.mark.parametrize(
    ("selector", "name"),
    [(user, "user"), (lambda x: x, "key"), (ByUser(), "ByUser"), (itemgetter(0), "itemgetter")],
)
def test_a_key_has_the_name_of_its_selector(selector: object, name: str) -> None:
    assert KeyBy(selector).name == name
    assert KeyBy(selector, name="mine").name == "mine"


def test_keys_are_the_same_by_selector_object_and_type() -> None:
    first, second = ByUser(), ByUser()
    assert KeyBy(first) == KeyBy(first, name="other name")
    assert hash(KeyBy(first)) == hash(KeyBy(first))
    assert KeyBy(first) != KeyBy(second)
    assert KeyBy(first, Types.INT()) == KeyBy(first, Types.INT())
    assert KeyBy(first, Types.INT()) != KeyBy(first, Types.LONG())
    assert KeyBy(first) != "key"
