"""What is not here, refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable


def refused(what: str, instead: str) -> UnsupportedFeatureError:
    """The error for a part of the Table API."""
    return UnsupportedFeatureError(
        f"{at_call(what)}: the Table API is not supported, except for tables that become streams; {instead}"
    )


def refuses(what: str, instead: str) -> Callable[..., Any]:
    """A method that is always refused, in place of one that PyFlink has."""

    def refuse(*_arguments: Any, **_keywords: Any) -> Any:
        raise refused(what, instead)

    return refuse
