from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.types import Types


@pytest.mark.parametrize(
    ("given", "type_info"),
    [
        (None, Types.PICKLED_BYTE_ARRAY()),
        (Types.INT(), Types.INT()),
        ([Types.INT(), Types.STRING()], Types.ROW([Types.INT(), Types.STRING()])),
    ],
)
def test_the_type_of_a_tag_is_optional(given: Any, type_info: Any) -> None:
    assert OutputTag("late", given).type_info == type_info


def test_tags_are_equal_by_their_ids() -> None:
    assert OutputTag("late", Types.INT()) == OutputTag("late")
    assert hash(OutputTag("late", Types.INT())) == hash(OutputTag("late"))
    assert OutputTag("late") != OutputTag("early")
    assert OutputTag("late") != "late"


def test_a_tag_pickles_with_its_type() -> None:
    copy = pickle.loads(pickle.dumps(OutputTag("late", Types.INT())))
    assert (copy.tag_id, copy.type_info) == ("late", Types.INT())
    assert repr(copy) == "OutputTag('late')"


def test_a_tag_cannot_be_changed() -> None:
    tag: Any = OutputTag[int]("late")
    with pytest.raises(AttributeError):
        tag.tag_id = "early"


@pytest.mark.parametrize("tag_id", ["", None, 5])
def test_a_tag_requires_an_id(tag_id: Any) -> None:
    with pytest.raises(ValueError, match="it must be a non-empty string"):
        OutputTag(tag_id)


def test_the_type_of_a_tag_must_be_type_information() -> None:
    with pytest.raises(TypeError, match="the type of OutputTag 'late' is <class 'int'>"):
        OutputTag("late", int)  # type: ignore[arg-type]
