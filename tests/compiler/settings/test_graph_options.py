from __future__ import annotations

import pytest

from opchain.common import Configuration, Duration
from opchain.compiler.settings import pipeline_options as options


@pytest.mark.parametrize(
    ("option", "default"),
    [
        (options.RUNTIME_MODE, "STREAMING"),
        (options.OPERATOR_CHAINING, True),
        (options.CHAIN_DIFFERENT_MAX_PARALLELISM, True),
        (options.BUFFER_TIMEOUT_ENABLED, True),
        (options.BUFFER_TIMEOUT, Duration.of_millis(100)),
        (options.CHANGELOG_ENABLED, None),
        (options.SAVEPOINT_DIRECTORY, None),
    ],
)
def test_the_defaults_are_flinks(option: object, default: object) -> None:
    assert Configuration().get(option) == default  # type: ignore[call-overload]
