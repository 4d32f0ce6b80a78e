"""Marks of how stable an API is. PyFlink: pyflink.util.api_stability_decorators.

PyFlink adds a sentence to the docstring; these decorators return what they decorate.
"""

from __future__ import annotations

from typing import TypeVar

from opchain.reexports import reexports

T = TypeVar("T")


class BaseAPIStabilityDecorator:
    """The root of the marks."""

    def __call__(self, func_or_cls: T) -> T:
        """Returns what it decorates."""
        return func_or_cls

    def get_directive(self, func_or_cls: object) -> str:  # noqa: ARG002 - PyFlink's signature
        """The sentence of the mark."""
        return f"{type(self).__name__}."


class Deprecated(BaseAPIStabilityDecorator):
    """A part that goes away."""

    def __init__(self, since: str, detail: str | None = None) -> None:
        self.since = since
        self.detail = detail


class Experimental(BaseAPIStabilityDecorator):
    """A part that may change at any time."""


class Internal(BaseAPIStabilityDecorator):
    """A part that programs should not use."""


class PublicEvolving(BaseAPIStabilityDecorator):
    """A part that may change between minor versions."""


class Public(BaseAPIStabilityDecorator):
    """A part that stays within a major version."""


__getattr__ = reexports(__name__)
