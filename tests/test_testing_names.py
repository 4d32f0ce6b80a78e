"""`opchain.testing`: what it offers, loaded when asked for."""

import doctest

import pytest

import opchain.testing


def test_every_name_is_there() -> None:
    assert set(opchain.testing.__all__) == set(dir(opchain.testing))
    for name in opchain.testing.__all__:
        assert callable(getattr(opchain.testing, name)) or name == "faults"
    assert callable(opchain.testing.faults.run_with_kills)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'assert_fused'"):
        _ = opchain.testing.assert_fused


def test_the_example_of_the_documentation_runs() -> None:
    results = doctest.testmod(opchain.testing)
    assert (results.attempted > 0, results.failed) == (True, 0)
