"""opchain.table has what a program needs to make streams of tables, and says so of the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

import opchain.table
from opchain.runtime.errors import UnsupportedFeatureError


@pytest.mark.parametrize("name", opchain.table.__all__)
def test_opchain_table_has_every_exported_name(name: str) -> None:
    assert getattr(opchain.table, name).__name__ == name
    assert name in dir(opchain.table)


@pytest.mark.parametrize("name", ["SqlDialect", "AggregateFunction"])
def test_unsupported_names_of_pyflink_table_are_refused_when_used(name: str) -> None:
    refused = getattr(opchain.table, name)
    with pytest.raises(
        UnsupportedFeatureError, match=rf"opchain\.table\..*\.{name} is not supported"
    ):
        refused()


def test_unknown_names_of_opchain_table_do_not_exist() -> None:
    assert not hasattr(opchain.table, "Tables")


def test_importing_opchain_table_imports_no_submodule() -> None:
    script = "import sys, opchain.table; print([m for m in sys.modules if 'opchain.compiler' in m])"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
