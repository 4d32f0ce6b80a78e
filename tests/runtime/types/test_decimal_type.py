from __future__ import annotations

from decimal import Decimal

import pytest

from opchain.runtime.types.printed_form import printer_of
from opchain.runtime.types.time_types import BigDecimalTypeInfo
from opchain.runtime.types.types import Types


def test_a_decimal_type_has_precision_and_scale() -> None:
    kind = BigDecimalTypeInfo.of(5, 2)
    assert (kind.precision, kind.scale, repr(kind)) == (5, 2, "BigDecimal(5, 2)")
    assert kind.java_class == Types.BIG_DEC().java_class
    assert kind == BigDecimalTypeInfo.of(5, 2) != BigDecimalTypeInfo.of(5, 1)
    assert printer_of(kind)(Decimal("1.50")) == "1.50"


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1)])
def test_invalid_precisions_and_scales_are_refused(precision: int, scale: int) -> None:
    with pytest.raises(ValueError, match=f"a decimal of {precision} digits with scale {scale}"):
        BigDecimalTypeInfo.of(precision, scale)
