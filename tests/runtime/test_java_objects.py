from __future__ import annotations

import pytest
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.java_objects import InputFormat, JavaObjectWrapper, no_java


@pytest.mark.parametrize("wrapper", [JavaObjectWrapper, InputFormat])
def test_a_java_object_cannot_be_wrapped(wrapper: type[JavaObjectWrapper]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"^{wrapper.__name__} belongs to a Java"):
        wrapper(object())


def test_a_wrapper_made_by_other_means_has_no_java_object() -> None:
    wrapper = object.__new__(JavaObjectWrapper)
    with pytest.raises(UnsupportedFeatureError, match=r"JavaObjectWrapper\.get_java_object\(\)"):
        wrapper.get_java_object()


def test_the_error_says_what_to_do_instead() -> None:
    assert str(no_java("X", "use Y")).endswith("; use Y")
