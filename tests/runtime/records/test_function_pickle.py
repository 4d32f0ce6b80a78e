from __future__ import annotations

import linecache
import pickle
import subprocess
import sys

import cloudpickle
import pytest

from opchain.compiler.dsl.captured_functions import captured
from opchain.runtime.records.function_pickle import dump_functions


def _with_inner_function() -> object:
    return lambda x: lambda y: x + y


@pytest.mark.parametrize("copied", [lambda f: pickle.loads(dump_functions(f)), captured])
def test_a_pickled_function_keeps_its_file(copied: object) -> None:
    function = copied(_with_inner_function())  # type: ignore[operator]
    assert function.__code__.co_filename == __file__
    assert function(1).__code__.co_filename == __file__
    assert "lambda" in linecache.getline(
        function.__code__.co_filename, function.__code__.co_firstlineno
    )
    assert function(1)(2) == 3


def test_classes_that_are_registered_go_by_value() -> None:
    program = (
        "import cloudpickle, pickle, sys\n"
        "from opchain.runtime.records.function_pickle import dump_functions\n"
        "class Add:\n"
        "    def add(self, x):\n"
        "        return x + 1\n"
        "sys.stdout.buffer.write(dump_functions(Add()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = pickle.loads(done.stdout)
    assert loaded.add(1) == 2
    assert loaded.add.__code__.co_filename == "<string>"
    assert cloudpickle.loads(done.stdout).add(2) == 3
