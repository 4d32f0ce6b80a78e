"""Names of PyFlink that stand for Java objects. They exist here, and say so when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from opchain.runtime.errors import UnsupportedFeatureError


def no_java(name: str, instead: str = "") -> UnsupportedFeatureError:
    """The error for a part of PyFlink's API that needs a JVM.

    Args:
        name: What was used, as the user wrote it.
        instead: What to use here; one clause.
    """
    hint = f"; {instead}" if instead else ""
    return UnsupportedFeatureError(
        f"{name} belongs to a Java object of Flink, and no JVM of Flink runs here{hint}"
    )


def no_java_attribute(owner: object, name: str, instead: str = "") -> AttributeError:
    """The error for PyFlink's private attributes, whose names begin with `_j_`: they hold Java objects.

    An AttributeError, so that `hasattr` finds none of them.
    """
    return AttributeError(str(no_java(f"{type(owner).__name__}.{name}", instead)))


class JavaObjectWrapper:
    """A Java object held by Python; not available.

    Raises:
        UnsupportedFeatureError: When it, or a class below it, is made.
    """

    def __init__(self, j_object: Any) -> None:  # noqa: ARG002 - PyFlink's signature
        raise no_java(type(self).__name__)

    def get_java_object(self) -> NoReturn:
        """Not available.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java(f"{type(self).__name__}.get_java_object()")


class InputFormat(JavaObjectWrapper):
    """A Java InputFormat; not available. Write a Source instead."""

    def __init__(self, j_input_format: Any) -> None:
        super().__init__(j_input_format)
