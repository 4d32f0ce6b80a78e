"""The type of decimals of a known precision and scale."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from opchain.runtime.types.type_information import BasicType, BasicTypeInfo

DEFAULT_PRECISION, DEFAULT_SCALE = 38, 18
"""What a Decimal of `Types.BIG_DEC()` has in formats that must know; those of Flink's legacy types."""

_MAX_PRECISION = 38


@dataclass(frozen=True, repr=False)
class BigDecimalTypeInfo(BasicTypeInfo[Decimal]):
    """A Decimal of `precision` digits, `scale` of them behind the point.

    Flink: BigDecimalTypeInfo. Everywhere but in formats it is a plain Decimal.

    Raises:
        ValueError: The precision is not from 1 to 38, or the scale not from 0 to the precision.
    """

    precision: int = DEFAULT_PRECISION
    scale: int = DEFAULT_SCALE

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= _MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise ValueError(
                f"a decimal of {self.precision} digits, {self.scale} of them behind the point, is not "
                f"possible; there are 1 to {_MAX_PRECISION} digits, and the scale is one of 0 to that"
            )

    @staticmethod
    def of(precision: int, scale: int) -> BigDecimalTypeInfo:
        """The type of this precision and scale."""
        return BigDecimalTypeInfo(BasicType.BIG_DEC, precision, scale)

    def __repr__(self) -> str:
        return f"BigDecimal({self.precision}, {self.scale})"
