"""Decorators that mark the stability of an API. PyFlink: pyflink.util.api_stability_decorators.

PyFlink adds a sentence to the docstring. Here the decorators return the function or class unchanged.
"""

from __future__ import annotations

from typing import TypeVar

from opchain.reexports import reexports

T = TypeVar("T")


class BaseAPIStabilityDecorator:
    """The base class of these decorators."""

    def __call__(self, func_or_cls: T) -> T:
        """Returns the function or class unchanged."""
        return func_or_cls

    def get_directive(self, func_or_cls: object) -> str:  # noqa: ARG002 - PyFlink's signature
        """The sentence that PyFlink adds to the docstring."""
        return f"{type(self).__name__}."


class Deprecated(BaseAPIStabilityDecorator):
    """Marks an API that will be removed."""

    def __init__(self, since: str, detail: str | None = None) -> None:
        self.since = since
        self.detail = detail


class Experimental(BaseAPIStabilityDecorator):
    """Marks an API that may change at any time."""


class Internal(BaseAPIStabilityDecorator):
    """Marks an API that programs should not use."""


class PublicEvolving(BaseAPIStabilityDecorator):
    """Marks an API that may change in a minor version."""


class Public(BaseAPIStabilityDecorator):
    """Marks an API that is stable within a major version."""


__getattr__ = reexports(__name__)
