"""Type variables bound to the kinds of state and of windows; see types/type_variables.py for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeVar

    from opchain.runtime.functions.state import State
    from opchain.runtime.functions.window import Window

    S = TypeVar("S", bound=State, default=Any)
    S_co = TypeVar("S_co", bound=State, covariant=True, default=Any)
    W = TypeVar("W", bound=Window, default=Any)
    W_co = TypeVar("W_co", bound=Window, covariant=True, default=Any)
    W_contra = TypeVar("W_contra", bound=Window, contravariant=True, default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")
    S_co = TypeVar("S_co", covariant=True)
    W = TypeVar("W")
    W_co = TypeVar("W_co", covariant=True)
    W_contra = TypeVar("W_contra", contravariant=True)
