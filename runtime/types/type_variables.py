"""The type variables of public classes and functions.

For a type checker each defaults to `Any`, so `class Parse(MapFunction)` passes the strictest settings, like `class
Parse(MapFunction[str, int])`. At run time they are plain `typing.TypeVar`s: defaults need Python 3.13, and executors
only have the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    V_co = TypeVar("V_co", covariant=True, default=Any)
    T_contra = TypeVar("T_contra", contravariant=True, default=Any)
    IN_contra = TypeVar("IN_contra", contravariant=True, default=Any)
    IN1_contra = TypeVar("IN1_contra", contravariant=True, default=Any)
    IN2_contra = TypeVar("IN2_contra", contravariant=True, default=Any)
    OUT_co = TypeVar("OUT_co", covariant=True, default=Any)
    ACC = TypeVar("ACC", default=Any)
    KEY_co = TypeVar("KEY_co", covariant=True, default=Any)
    KEY_contra = TypeVar("KEY_contra", contravariant=True, default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
    K = TypeVar("K")
    V = TypeVar("V")
    V_co = TypeVar("V_co", covariant=True)
    T_contra = TypeVar("T_contra", contravariant=True)
    IN_contra = TypeVar("IN_contra", contravariant=True)
    IN1_contra = TypeVar("IN1_contra", contravariant=True)
    IN2_contra = TypeVar("IN2_contra", contravariant=True)
    OUT_co = TypeVar("OUT_co", covariant=True)
    ACC = TypeVar("ACC")
    KEY_co = TypeVar("KEY_co", covariant=True)
    KEY_contra = TypeVar("KEY_contra", contravariant=True)
