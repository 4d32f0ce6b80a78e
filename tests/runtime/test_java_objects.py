from __future__ import annotations

import pytest

from opchain import java_gateway
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.java_objects import (
    InputFormat,
    JavaObjectWrapper,
    no_java,
    no_java_attribute,
)


@pytest.mark.parametrize("wrapper", [JavaObjectWrapper, InputFormat])
def test_constructors_refuse_a_java_object(wrapper: type[JavaObjectWrapper]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"^{wrapper.__name__} belongs to a Java"):
        wrapper(object())


def test_a_wrapper_created_in_another_way_has_no_java_object() -> None:
    wrapper = object.__new__(JavaObjectWrapper)
    with pytest.raises(UnsupportedFeatureError, match=r"JavaObjectWrapper\.get_java_object\(\)"):
        wrapper.get_java_object()


def test_the_error_says_what_to_use_instead() -> None:
    assert str(no_java("X", "use Y")).endswith("; use Y")


def test_the_error_names_an_attribute_that_would_hold_a_java_object() -> None:
    message = str(no_java_attribute(1, "_j_int"))
    assert message == "int._j_int belongs to a Java object of Flink, and no JVM of Flink runs here"


def test_get_gateway_is_refused() -> None:
    for name in ("get_gateway", "launch_gateway", "is_launch_gateway_disabled"):
        with pytest.raises(UnsupportedFeatureError, match=rf"{name}\(\) belongs to a Java"):
            getattr(java_gateway, name)()
